from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATE_UNSPECIFIED: _ClassVar[State]
    INIT: _ClassVar[State]
    HANDSHAKE: _ClassVar[State]
    READY: _ClassVar[State]
    EXECUTING: _ClassVar[State]
    TERMINATED: _ClassVar[State]
    FAULTED: _ClassVar[State]
    CANCELLED: _ClassVar[State]
STATE_UNSPECIFIED: State
INIT: State
HANDSHAKE: State
READY: State
EXECUTING: State
TERMINATED: State
FAULTED: State
CANCELLED: State

class SubmitRunRequest(_message.Message):
    __slots__ = ("config_json", "idempotency_key")
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    config_json: str
    idempotency_key: str
    def __init__(self, config_json: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class RunRequest(_message.Message):
    __slots__ = ("run_id", "reason")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    reason: str
    def __init__(self, run_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class RunInfo(_message.Message):
    __slots__ = ("run_id", "state", "reason", "total_steps")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TOTAL_STEPS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    state: State
    reason: str
    total_steps: int
    def __init__(self, run_id: _Optional[str] = ..., state: _Optional[_Union[State, str]] = ..., reason: _Optional[str] = ..., total_steps: _Optional[int] = ...) -> None: ...

class WatchRunsRequest(_message.Message):
    __slots__ = ("interval_ms", "run_ids")
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    interval_ms: int
    run_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, interval_ms: _Optional[int] = ..., run_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ListRunsReply(_message.Message):
    __slots__ = ("runs", "deleted")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[RunInfo]
    deleted: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, runs: _Optional[_Iterable[_Union[RunInfo, _Mapping]]] = ..., deleted: _Optional[_Iterable[str]] = ...) -> None: ...

class QueryCurveRequest(_message.Message):
    __slots__ = ("run_id", "name", "points", "from_step")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    FROM_STEP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    name: str
    points: int
    from_step: int
    def __init__(self, run_id: _Optional[str] = ..., name: _Optional[str] = ..., points: _Optional[int] = ..., from_step: _Optional[int] = ...) -> None: ...

class Curve(_message.Message):
    __slots__ = ("step", "mean", "count", "known_names")
    STEP_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    KNOWN_NAMES_FIELD_NUMBER: _ClassVar[int]
    step: _containers.RepeatedScalarFieldContainer[int]
    mean: _containers.RepeatedScalarFieldContainer[float]
    count: _containers.RepeatedScalarFieldContainer[int]
    known_names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, step: _Optional[_Iterable[int]] = ..., mean: _Optional[_Iterable[float]] = ..., count: _Optional[_Iterable[int]] = ..., known_names: _Optional[_Iterable[str]] = ...) -> None: ...
