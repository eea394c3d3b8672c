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

class Stream(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STDOUT: _ClassVar[Stream]
    STDERR: _ClassVar[Stream]
STATE_UNSPECIFIED: State
INIT: State
HANDSHAKE: State
READY: State
EXECUTING: State
TERMINATED: State
FAULTED: State
CANCELLED: State
STDOUT: Stream
STDERR: Stream

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

class CommandRunRequest(_message.Message):
    __slots__ = ("run_id", "command_id", "command_json")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_JSON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    command_id: str
    command_json: str
    def __init__(self, run_id: _Optional[str] = ..., command_id: _Optional[str] = ..., command_json: _Optional[str] = ...) -> None: ...

class CommandRunReply(_message.Message):
    __slots__ = ("seq", "is_repeat")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    IS_REPEAT_FIELD_NUMBER: _ClassVar[int]
    seq: int
    is_repeat: bool
    def __init__(self, seq: _Optional[int] = ..., is_repeat: _Optional[bool] = ...) -> None: ...

class RunInfo(_message.Message):
    __slots__ = ("run_id", "name", "area", "worker_name", "state", "reason", "attempt", "created_at", "updated_at", "gpus_requested", "gpus_mandatory", "granted", "tags", "total_steps", "cancel_requested", "waiting_for", "held_by", "telemetry", "revision", "summary", "run_dir", "history", "life", "time_limit_s", "config_json", "cpus", "memory_mb", "parent_run_id", "relation", "settings_note", "settings_json", "children", "capabilities_json", "algo", "env_id", "seed", "experiment", "axes_json", "note", "origin", "chosen_settings_json", "on", "node", "job")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    AREA_FIELD_NUMBER: _ClassVar[int]
    WORKER_NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    GPUS_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    GPUS_MANDATORY_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_STEPS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    HELD_BY_FIELD_NUMBER: _ClassVar[int]
    TELEMETRY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    RUN_DIR_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    TIME_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MB_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RELATION_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_NOTE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_JSON_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_JSON_FIELD_NUMBER: _ClassVar[int]
    ALGO_FIELD_NUMBER: _ClassVar[int]
    ENV_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    AXES_JSON_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_SETTINGS_JSON_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    name: str
    area: str
    worker_name: str
    state: State
    reason: str
    attempt: int
    created_at: float
    updated_at: float
    gpus_requested: int
    gpus_mandatory: bool
    granted: _containers.RepeatedScalarFieldContainer[str]
    tags: _containers.RepeatedScalarFieldContainer[str]
    total_steps: int
    cancel_requested: bool
    waiting_for: str
    held_by: str
    telemetry: str
    revision: int
    summary: Summary
    run_dir: str
    history: _containers.RepeatedCompositeFieldContainer[Move]
    life: str
    time_limit_s: float
    config_json: str
    cpus: float
    memory_mb: int
    parent_run_id: str
    relation: str
    settings_note: str
    settings_json: str
    children: _containers.RepeatedScalarFieldContainer[str]
    capabilities_json: str
    algo: str
    env_id: str
    seed: int
    experiment: str
    axes_json: str
    note: str
    origin: str
    chosen_settings_json: str
    on: str
    node: str
    job: str
    def __init__(self, run_id: _Optional[str] = ..., name: _Optional[str] = ..., area: _Optional[str] = ..., worker_name: _Optional[str] = ..., state: _Optional[_Union[State, str]] = ..., reason: _Optional[str] = ..., attempt: _Optional[int] = ..., created_at: _Optional[float] = ..., updated_at: _Optional[float] = ..., gpus_requested: _Optional[int] = ..., gpus_mandatory: _Optional[bool] = ..., granted: _Optional[_Iterable[str]] = ..., tags: _Optional[_Iterable[str]] = ..., total_steps: _Optional[int] = ..., cancel_requested: _Optional[bool] = ..., waiting_for: _Optional[str] = ..., held_by: _Optional[str] = ..., telemetry: _Optional[str] = ..., revision: _Optional[int] = ..., summary: _Optional[_Union[Summary, _Mapping]] = ..., run_dir: _Optional[str] = ..., history: _Optional[_Iterable[_Union[Move, _Mapping]]] = ..., life: _Optional[str] = ..., time_limit_s: _Optional[float] = ..., config_json: _Optional[str] = ..., cpus: _Optional[float] = ..., memory_mb: _Optional[int] = ..., parent_run_id: _Optional[str] = ..., relation: _Optional[str] = ..., settings_note: _Optional[str] = ..., settings_json: _Optional[str] = ..., children: _Optional[_Iterable[str]] = ..., capabilities_json: _Optional[str] = ..., algo: _Optional[str] = ..., env_id: _Optional[str] = ..., seed: _Optional[int] = ..., experiment: _Optional[str] = ..., axes_json: _Optional[str] = ..., note: _Optional[str] = ..., origin: _Optional[str] = ..., chosen_settings_json: _Optional[str] = ..., on: _Optional[str] = ..., node: _Optional[str] = ..., job: _Optional[str] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("old", "new", "at", "reason")
    OLD_FIELD_NUMBER: _ClassVar[int]
    NEW_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    old: State
    new: State
    at: float
    reason: str
    def __init__(self, old: _Optional[_Union[State, str]] = ..., new: _Optional[_Union[State, str]] = ..., at: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class Summary(_message.Message):
    __slots__ = ("events", "steps", "episodes", "metrics", "rejects", "last_step", "last_return", "recent_returns", "steps_per_s", "last_event_at", "last_values", "mean_return", "mean_over", "return_trace", "eval_episodes", "eval_mean", "eval_interval", "eval_over", "env_steps", "values_left_out", "observed", "checkpoints")
    class LastValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    REJECTS_FIELD_NUMBER: _ClassVar[int]
    LAST_STEP_FIELD_NUMBER: _ClassVar[int]
    LAST_RETURN_FIELD_NUMBER: _ClassVar[int]
    RECENT_RETURNS_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_S_FIELD_NUMBER: _ClassVar[int]
    LAST_EVENT_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_VALUES_FIELD_NUMBER: _ClassVar[int]
    MEAN_RETURN_FIELD_NUMBER: _ClassVar[int]
    MEAN_OVER_FIELD_NUMBER: _ClassVar[int]
    RETURN_TRACE_FIELD_NUMBER: _ClassVar[int]
    EVAL_EPISODES_FIELD_NUMBER: _ClassVar[int]
    EVAL_MEAN_FIELD_NUMBER: _ClassVar[int]
    EVAL_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    EVAL_OVER_FIELD_NUMBER: _ClassVar[int]
    ENV_STEPS_FIELD_NUMBER: _ClassVar[int]
    VALUES_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    events: int
    steps: int
    episodes: int
    metrics: int
    rejects: int
    last_step: int
    last_return: float
    recent_returns: _containers.RepeatedScalarFieldContainer[float]
    steps_per_s: float
    last_event_at: float
    last_values: _containers.ScalarMap[str, float]
    mean_return: float
    mean_over: int
    return_trace: _containers.RepeatedScalarFieldContainer[float]
    eval_episodes: int
    eval_mean: float
    eval_interval: float
    eval_over: int
    env_steps: int
    values_left_out: int
    observed: _containers.RepeatedCompositeFieldContainer[Observed]
    checkpoints: int
    def __init__(self, events: _Optional[int] = ..., steps: _Optional[int] = ..., episodes: _Optional[int] = ..., metrics: _Optional[int] = ..., rejects: _Optional[int] = ..., last_step: _Optional[int] = ..., last_return: _Optional[float] = ..., recent_returns: _Optional[_Iterable[float]] = ..., steps_per_s: _Optional[float] = ..., last_event_at: _Optional[float] = ..., last_values: _Optional[_Mapping[str, float]] = ..., mean_return: _Optional[float] = ..., mean_over: _Optional[int] = ..., return_trace: _Optional[_Iterable[float]] = ..., eval_episodes: _Optional[int] = ..., eval_mean: _Optional[float] = ..., eval_interval: _Optional[float] = ..., eval_over: _Optional[int] = ..., env_steps: _Optional[int] = ..., values_left_out: _Optional[int] = ..., observed: _Optional[_Iterable[_Union[Observed, _Mapping]]] = ..., checkpoints: _Optional[int] = ...) -> None: ...

class Observed(_message.Message):
    __slots__ = ("what", "by")
    WHAT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    what: str
    by: str
    def __init__(self, what: _Optional[str] = ..., by: _Optional[str] = ...) -> None: ...

class ListRunsRequest(_message.Message):
    __slots__ = ("states", "limit", "page_runs", "before", "experiment", "where", "setting_keys", "sort")
    STATES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAGE_RUNS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    SETTING_KEYS_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedScalarFieldContainer[State]
    limit: int
    page_runs: int
    before: int
    experiment: str
    where: str
    setting_keys: _containers.RepeatedScalarFieldContainer[str]
    sort: str
    def __init__(self, states: _Optional[_Iterable[_Union[State, str]]] = ..., limit: _Optional[int] = ..., page_runs: _Optional[int] = ..., before: _Optional[int] = ..., experiment: _Optional[str] = ..., where: _Optional[str] = ..., setting_keys: _Optional[_Iterable[str]] = ..., sort: _Optional[str] = ...) -> None: ...

class EditRunRequest(_message.Message):
    __slots__ = ("run_ids", "name", "note", "add_tags", "remove_tags")
    RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ADD_TAGS_FIELD_NUMBER: _ClassVar[int]
    REMOVE_TAGS_FIELD_NUMBER: _ClassVar[int]
    run_ids: _containers.RepeatedScalarFieldContainer[str]
    name: str
    note: str
    add_tags: _containers.RepeatedScalarFieldContainer[str]
    remove_tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, run_ids: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., note: _Optional[str] = ..., add_tags: _Optional[_Iterable[str]] = ..., remove_tags: _Optional[_Iterable[str]] = ...) -> None: ...

class ListRunsReply(_message.Message):
    __slots__ = ("runs", "total", "deleted", "next", "continues")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    CONTINUES_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[RunInfo]
    total: int
    deleted: _containers.RepeatedScalarFieldContainer[str]
    next: int
    continues: bool
    def __init__(self, runs: _Optional[_Iterable[_Union[RunInfo, _Mapping]]] = ..., total: _Optional[int] = ..., deleted: _Optional[_Iterable[str]] = ..., next: _Optional[int] = ..., continues: _Optional[bool] = ...) -> None: ...

class WatchRunsRequest(_message.Message):
    __slots__ = ("states", "limit", "interval_ms", "run_ids", "experiment")
    STATES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedScalarFieldContainer[State]
    limit: int
    interval_ms: int
    run_ids: _containers.RepeatedScalarFieldContainer[str]
    experiment: str
    def __init__(self, states: _Optional[_Iterable[_Union[State, str]]] = ..., limit: _Optional[int] = ..., interval_ms: _Optional[int] = ..., run_ids: _Optional[_Iterable[str]] = ..., experiment: _Optional[str] = ...) -> None: ...

class DeleteRunReply(_message.Message):
    __slots__ = ("freed_bytes",)
    FREED_BYTES_FIELD_NUMBER: _ClassVar[int]
    freed_bytes: int
    def __init__(self, freed_bytes: _Optional[int] = ...) -> None: ...

class SubmitRunsRequest(_message.Message):
    __slots__ = ("runs", "experiment", "is_dry_run")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    EXPERIMENT_FIELD_NUMBER: _ClassVar[int]
    IS_DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[SubmitRunRequest]
    experiment: PutExperimentRequest
    is_dry_run: bool
    def __init__(self, runs: _Optional[_Iterable[_Union[SubmitRunRequest, _Mapping]]] = ..., experiment: _Optional[_Union[PutExperimentRequest, _Mapping]] = ..., is_dry_run: _Optional[bool] = ...) -> None: ...

class SubmitRunsReply(_message.Message):
    __slots__ = ("runs", "is_new")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    IS_NEW_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[RunInfo]
    is_new: _containers.RepeatedScalarFieldContainer[bool]
    def __init__(self, runs: _Optional[_Iterable[_Union[RunInfo, _Mapping]]] = ..., is_new: _Optional[_Iterable[bool]] = ...) -> None: ...

class PutExperimentRequest(_message.Message):
    __slots__ = ("name", "document_json", "note", "must_be_new")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_JSON_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    MUST_BE_NEW_FIELD_NUMBER: _ClassVar[int]
    name: str
    document_json: str
    note: str
    must_be_new: bool
    def __init__(self, name: _Optional[str] = ..., document_json: _Optional[str] = ..., note: _Optional[str] = ..., must_be_new: _Optional[bool] = ...) -> None: ...

class ExperimentRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExperimentInfo(_message.Message):
    __slots__ = ("name", "document_json", "note", "created_at", "is_reconstructed", "runs_by_state")
    class RunsByStateEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_JSON_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    IS_RECONSTRUCTED_FIELD_NUMBER: _ClassVar[int]
    RUNS_BY_STATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    document_json: str
    note: str
    created_at: float
    is_reconstructed: bool
    runs_by_state: _containers.ScalarMap[str, int]
    def __init__(self, name: _Optional[str] = ..., document_json: _Optional[str] = ..., note: _Optional[str] = ..., created_at: _Optional[float] = ..., is_reconstructed: _Optional[bool] = ..., runs_by_state: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ListExperimentsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListExperimentsReply(_message.Message):
    __slots__ = ("experiments",)
    EXPERIMENTS_FIELD_NUMBER: _ClassVar[int]
    experiments: _containers.RepeatedCompositeFieldContainer[ExperimentInfo]
    def __init__(self, experiments: _Optional[_Iterable[_Union[ExperimentInfo, _Mapping]]] = ...) -> None: ...

class DeleteExperimentReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Event(_message.Message):
    __slots__ = ("seq", "ts_ns", "step", "episode", "metric", "lifecycle")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TS_NS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    LIFECYCLE_FIELD_NUMBER: _ClassVar[int]
    seq: int
    ts_ns: int
    step: Step
    episode: Episode
    metric: Metric
    lifecycle: Lifecycle
    def __init__(self, seq: _Optional[int] = ..., ts_ns: _Optional[int] = ..., step: _Optional[_Union[Step, _Mapping]] = ..., episode: _Optional[_Union[Episode, _Mapping]] = ..., metric: _Optional[_Union[Metric, _Mapping]] = ..., lifecycle: _Optional[_Union[Lifecycle, _Mapping]] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("step_index", "reward", "env_index", "agent_id", "episode_index", "terminated", "truncated", "extra")
    STEP_INDEX_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    ENV_INDEX_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    EPISODE_INDEX_FIELD_NUMBER: _ClassVar[int]
    TERMINATED_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    step_index: int
    reward: float
    env_index: int
    agent_id: str
    episode_index: int
    terminated: bool
    truncated: bool
    extra: bytes
    def __init__(self, step_index: _Optional[int] = ..., reward: _Optional[float] = ..., env_index: _Optional[int] = ..., agent_id: _Optional[str] = ..., episode_index: _Optional[int] = ..., terminated: _Optional[bool] = ..., truncated: _Optional[bool] = ..., extra: _Optional[bytes] = ...) -> None: ...

class Episode(_message.Message):
    __slots__ = ("episode_index", "total_reward", "steps", "env_index", "agent_id", "terminated", "truncated", "extra", "global_step")
    EPISODE_INDEX_FIELD_NUMBER: _ClassVar[int]
    TOTAL_REWARD_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    ENV_INDEX_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TERMINATED_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_STEP_FIELD_NUMBER: _ClassVar[int]
    episode_index: int
    total_reward: float
    steps: int
    env_index: int
    agent_id: str
    terminated: bool
    truncated: bool
    extra: bytes
    global_step: int
    def __init__(self, episode_index: _Optional[int] = ..., total_reward: _Optional[float] = ..., steps: _Optional[int] = ..., env_index: _Optional[int] = ..., agent_id: _Optional[str] = ..., terminated: _Optional[bool] = ..., truncated: _Optional[bool] = ..., extra: _Optional[bytes] = ..., global_step: _Optional[int] = ...) -> None: ...

class Metric(_message.Message):
    __slots__ = ("names", "values", "step", "extra")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    values: _containers.RepeatedScalarFieldContainer[float]
    step: int
    extra: bytes
    def __init__(self, names: _Optional[_Iterable[str]] = ..., values: _Optional[_Iterable[float]] = ..., step: _Optional[int] = ..., extra: _Optional[bytes] = ...) -> None: ...

class Lifecycle(_message.Message):
    __slots__ = ("event", "payload", "extra")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    event: str
    payload: bytes
    extra: bytes
    def __init__(self, event: _Optional[str] = ..., payload: _Optional[bytes] = ..., extra: _Optional[bytes] = ...) -> None: ...

class LogText(_message.Message):
    __slots__ = ("stream", "offset", "text")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    stream: Stream
    offset: int
    text: bytes
    def __init__(self, stream: _Optional[_Union[Stream, str]] = ..., offset: _Optional[int] = ..., text: _Optional[bytes] = ...) -> None: ...

class Reject(_message.Message):
    __slots__ = ("stream", "offset", "length", "reason", "head")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    stream: Stream
    offset: int
    length: int
    reason: str
    head: bytes
    def __init__(self, stream: _Optional[_Union[Stream, str]] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., reason: _Optional[str] = ..., head: _Optional[bytes] = ...) -> None: ...

class Gap(_message.Message):
    __slots__ = ("stream", "offset", "length", "reason")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    stream: Stream
    offset: int
    length: int
    reason: str
    def __init__(self, stream: _Optional[_Union[Stream, str]] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class RegisterWorkerRequest(_message.Message):
    __slots__ = ("run_id", "attempt", "nonce", "worker_id", "capabilities_json")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_JSON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    attempt: int
    nonce: str
    worker_id: str
    capabilities_json: str
    def __init__(self, run_id: _Optional[str] = ..., attempt: _Optional[int] = ..., nonce: _Optional[str] = ..., worker_id: _Optional[str] = ..., capabilities_json: _Optional[str] = ...) -> None: ...

class RegisterWorkerReply(_message.Message):
    __slots__ = ("session_token", "cursor")
    SESSION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    session_token: str
    cursor: Cursor
    def __init__(self, session_token: _Optional[str] = ..., cursor: _Optional[_Union[Cursor, _Mapping]] = ...) -> None: ...

class Cursor(_message.Message):
    __slots__ = ("stdout_offset", "stderr_offset", "next_seq")
    STDOUT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    STDERR_OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQ_FIELD_NUMBER: _ClassVar[int]
    stdout_offset: int
    stderr_offset: int
    next_seq: int
    def __init__(self, stdout_offset: _Optional[int] = ..., stderr_offset: _Optional[int] = ..., next_seq: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("run_id", "progress")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    progress: int
    def __init__(self, run_id: _Optional[str] = ..., progress: _Optional[int] = ...) -> None: ...

class HeartbeatReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PublishTelemetryRequest(_message.Message):
    __slots__ = ("run_id", "stream", "start", "end", "events", "texts", "rejects", "gaps", "behind_bytes", "exited", "drained", "lookalikes")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    REJECTS_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    BEHIND_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXITED_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    LOOKALIKES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    stream: Stream
    start: int
    end: int
    events: _containers.RepeatedCompositeFieldContainer[Event]
    texts: _containers.RepeatedCompositeFieldContainer[LogText]
    rejects: _containers.RepeatedCompositeFieldContainer[Reject]
    gaps: _containers.RepeatedCompositeFieldContainer[Gap]
    behind_bytes: int
    exited: bool
    drained: bool
    lookalikes: Lookalikes
    def __init__(self, run_id: _Optional[str] = ..., stream: _Optional[_Union[Stream, str]] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., texts: _Optional[_Iterable[_Union[LogText, _Mapping]]] = ..., rejects: _Optional[_Iterable[_Union[Reject, _Mapping]]] = ..., gaps: _Optional[_Iterable[_Union[Gap, _Mapping]]] = ..., behind_bytes: _Optional[int] = ..., exited: _Optional[bool] = ..., drained: _Optional[bool] = ..., lookalikes: _Optional[_Union[Lookalikes, _Mapping]] = ...) -> None: ...

class Lookalikes(_message.Message):
    __slots__ = ("count", "first", "why")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    count: int
    first: bytes
    why: str
    def __init__(self, count: _Optional[int] = ..., first: _Optional[bytes] = ..., why: _Optional[str] = ...) -> None: ...

class PublishTelemetryReply(_message.Message):
    __slots__ = ("next_offset", "durable_offset")
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    DURABLE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    next_offset: int
    durable_offset: int
    def __init__(self, next_offset: _Optional[int] = ..., durable_offset: _Optional[int] = ...) -> None: ...

class StreamRequest(_message.Message):
    __slots__ = ("run_id", "since_seq", "until_seq", "tail")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_SEQ_FIELD_NUMBER: _ClassVar[int]
    UNTIL_SEQ_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    since_seq: int
    until_seq: int
    tail: int
    def __init__(self, run_id: _Optional[str] = ..., since_seq: _Optional[int] = ..., until_seq: _Optional[int] = ..., tail: _Optional[int] = ...) -> None: ...

class EventBatch(_message.Message):
    __slots__ = ("events", "missed", "renumbered")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    RENUMBERED_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    missed: Range
    renumbered: bool
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., missed: _Optional[_Union[Range, _Mapping]] = ..., renumbered: _Optional[bool] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("first", "last")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ...) -> None: ...

class StreamLogsRequest(_message.Message):
    __slots__ = ("run_id", "since_stdout", "since_stderr", "follow", "tail_bytes")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_STDOUT_FIELD_NUMBER: _ClassVar[int]
    SINCE_STDERR_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    TAIL_BYTES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    since_stdout: int
    since_stderr: int
    follow: bool
    tail_bytes: int
    def __init__(self, run_id: _Optional[str] = ..., since_stdout: _Optional[int] = ..., since_stderr: _Optional[int] = ..., follow: _Optional[bool] = ..., tail_bytes: _Optional[int] = ...) -> None: ...

class LogBatch(_message.Message):
    __slots__ = ("texts", "rejects", "gaps")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    REJECTS_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedCompositeFieldContainer[LogText]
    rejects: _containers.RepeatedCompositeFieldContainer[Reject]
    gaps: _containers.RepeatedCompositeFieldContainer[Gap]
    def __init__(self, texts: _Optional[_Iterable[_Union[LogText, _Mapping]]] = ..., rejects: _Optional[_Iterable[_Union[Reject, _Mapping]]] = ..., gaps: _Optional[_Iterable[_Union[Gap, _Mapping]]] = ...) -> None: ...

class StreamFramesRequest(_message.Message):
    __slots__ = ("run_id", "hz", "max_dim", "wait_s", "lane")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    HZ_FIELD_NUMBER: _ClassVar[int]
    MAX_DIM_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    hz: float
    max_dim: int
    wait_s: float
    lane: int
    def __init__(self, run_id: _Optional[str] = ..., hz: _Optional[float] = ..., max_dim: _Optional[int] = ..., wait_s: _Optional[float] = ..., lane: _Optional[int] = ...) -> None: ...

class Frame(_message.Message):
    __slots__ = ("png", "number", "age_ns", "last_reward", "rolling_return", "step_rate_hz", "cost_ns")
    PNG_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    AGE_NS_FIELD_NUMBER: _ClassVar[int]
    LAST_REWARD_FIELD_NUMBER: _ClassVar[int]
    ROLLING_RETURN_FIELD_NUMBER: _ClassVar[int]
    STEP_RATE_HZ_FIELD_NUMBER: _ClassVar[int]
    COST_NS_FIELD_NUMBER: _ClassVar[int]
    png: bytes
    number: int
    age_ns: int
    last_reward: float
    rolling_return: float
    step_rate_hz: float
    cost_ns: int
    def __init__(self, png: _Optional[bytes] = ..., number: _Optional[int] = ..., age_ns: _Optional[int] = ..., last_reward: _Optional[float] = ..., rolling_return: _Optional[float] = ..., step_rate_hz: _Optional[float] = ..., cost_ns: _Optional[int] = ...) -> None: ...

class QueryCurveRequest(_message.Message):
    __slots__ = ("run_id", "name", "points", "from_step", "to_step", "names_after")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    FROM_STEP_FIELD_NUMBER: _ClassVar[int]
    TO_STEP_FIELD_NUMBER: _ClassVar[int]
    NAMES_AFTER_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    name: str
    points: int
    from_step: int
    to_step: int
    names_after: str
    def __init__(self, run_id: _Optional[str] = ..., name: _Optional[str] = ..., points: _Optional[int] = ..., from_step: _Optional[int] = ..., to_step: _Optional[int] = ..., names_after: _Optional[str] = ...) -> None: ...

class Curve(_message.Message):
    __slots__ = ("name", "step", "mean", "min", "max", "count", "known_names", "axis", "seconds", "started_at", "last_seq", "has_more_names")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    KNOWN_NAMES_FIELD_NUMBER: _ClassVar[int]
    AXIS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_NAMES_FIELD_NUMBER: _ClassVar[int]
    name: str
    step: _containers.RepeatedScalarFieldContainer[int]
    mean: _containers.RepeatedScalarFieldContainer[float]
    min: _containers.RepeatedScalarFieldContainer[float]
    max: _containers.RepeatedScalarFieldContainer[float]
    count: _containers.RepeatedScalarFieldContainer[int]
    known_names: _containers.RepeatedScalarFieldContainer[str]
    axis: str
    seconds: _containers.RepeatedScalarFieldContainer[float]
    started_at: float
    last_seq: int
    has_more_names: bool
    def __init__(self, name: _Optional[str] = ..., step: _Optional[_Iterable[int]] = ..., mean: _Optional[_Iterable[float]] = ..., min: _Optional[_Iterable[float]] = ..., max: _Optional[_Iterable[float]] = ..., count: _Optional[_Iterable[int]] = ..., known_names: _Optional[_Iterable[str]] = ..., axis: _Optional[str] = ..., seconds: _Optional[_Iterable[float]] = ..., started_at: _Optional[float] = ..., last_seq: _Optional[int] = ..., has_more_names: _Optional[bool] = ...) -> None: ...

class ImportRunRequest(_message.Message):
    __slots__ = ("head", "batch", "end")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    head: ImportHead
    batch: ImportBatch
    end: ImportEnd
    def __init__(self, head: _Optional[_Union[ImportHead, _Mapping]] = ..., batch: _Optional[_Union[ImportBatch, _Mapping]] = ..., end: _Optional[_Union[ImportEnd, _Mapping]] = ...) -> None: ...

class ImportHead(_message.Message):
    __slots__ = ("format", "path")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    format: str
    path: str
    def __init__(self, format: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class ImportBatch(_message.Message):
    __slots__ = ("after_seq", "name_sets", "metric_ts_ns", "metric_steps", "metric_sets", "values", "events", "places", "cursor_json")
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    NAME_SETS_FIELD_NUMBER: _ClassVar[int]
    METRIC_TS_NS_FIELD_NUMBER: _ClassVar[int]
    METRIC_STEPS_FIELD_NUMBER: _ClassVar[int]
    METRIC_SETS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_JSON_FIELD_NUMBER: _ClassVar[int]
    after_seq: int
    name_sets: _containers.RepeatedCompositeFieldContainer[ImportNames]
    metric_ts_ns: _containers.RepeatedScalarFieldContainer[int]
    metric_steps: _containers.RepeatedScalarFieldContainer[int]
    metric_sets: _containers.RepeatedScalarFieldContainer[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    places: _containers.RepeatedScalarFieldContainer[int]
    cursor_json: str
    def __init__(self, after_seq: _Optional[int] = ..., name_sets: _Optional[_Iterable[_Union[ImportNames, _Mapping]]] = ..., metric_ts_ns: _Optional[_Iterable[int]] = ..., metric_steps: _Optional[_Iterable[int]] = ..., metric_sets: _Optional[_Iterable[int]] = ..., values: _Optional[_Iterable[float]] = ..., events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., places: _Optional[_Iterable[int]] = ..., cursor_json: _Optional[str] = ...) -> None: ...

class ImportNames(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class ImportEnd(_message.Message):
    __slots__ = ("document_json", "artifacts_json")
    DOCUMENT_JSON_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_JSON_FIELD_NUMBER: _ClassVar[int]
    document_json: str
    artifacts_json: str
    def __init__(self, document_json: _Optional[str] = ..., artifacts_json: _Optional[str] = ...) -> None: ...

class ImportRunReply(_message.Message):
    __slots__ = ("last_seq", "cursor_json", "run_id", "run")
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    CURSOR_JSON_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    last_seq: int
    cursor_json: str
    run_id: str
    run: RunInfo
    def __init__(self, last_seq: _Optional[int] = ..., cursor_json: _Optional[str] = ..., run_id: _Optional[str] = ..., run: _Optional[_Union[RunInfo, _Mapping]] = ...) -> None: ...

class GetHealthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Health(_message.Message):
    __slots__ = ("healthy", "problem", "pid", "version", "started_at", "addresses", "root", "gpus", "live_runs", "max_runs", "cpus", "cpus_requested", "memory_mb", "memory_mb_requested", "waiting_runs", "disk_free_bytes")
    HEALTHY_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    LIVE_RUNS_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNS_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    CPUS_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MB_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    WAITING_RUNS_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    healthy: bool
    problem: str
    pid: int
    version: str
    started_at: float
    addresses: _containers.RepeatedScalarFieldContainer[str]
    root: str
    gpus: _containers.RepeatedCompositeFieldContainer[Gpu]
    live_runs: int
    max_runs: int
    cpus: float
    cpus_requested: float
    memory_mb: int
    memory_mb_requested: int
    waiting_runs: int
    disk_free_bytes: int
    def __init__(self, healthy: _Optional[bool] = ..., problem: _Optional[str] = ..., pid: _Optional[int] = ..., version: _Optional[str] = ..., started_at: _Optional[float] = ..., addresses: _Optional[_Iterable[str]] = ..., root: _Optional[str] = ..., gpus: _Optional[_Iterable[_Union[Gpu, _Mapping]]] = ..., live_runs: _Optional[int] = ..., max_runs: _Optional[int] = ..., cpus: _Optional[float] = ..., cpus_requested: _Optional[float] = ..., memory_mb: _Optional[int] = ..., memory_mb_requested: _Optional[int] = ..., waiting_runs: _Optional[int] = ..., disk_free_bytes: _Optional[int] = ...) -> None: ...

class Gpu(_message.Message):
    __slots__ = ("uuid", "name", "owner", "blocked")
    UUID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    name: str
    owner: str
    blocked: str
    def __init__(self, uuid: _Optional[str] = ..., name: _Optional[str] = ..., owner: _Optional[str] = ..., blocked: _Optional[str] = ...) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ("kill_runs",)
    KILL_RUNS_FIELD_NUMBER: _ClassVar[int]
    kill_runs: bool
    def __init__(self, kill_runs: _Optional[bool] = ...) -> None: ...

class ShutdownReply(_message.Message):
    __slots__ = ("runs_left",)
    RUNS_LEFT_FIELD_NUMBER: _ClassVar[int]
    runs_left: int
    def __init__(self, runs_left: _Optional[int] = ...) -> None: ...

class NodeReport(_message.Message):
    __slots__ = ("run_id", "cpu_s", "watch", "frame", "no_frame")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    NO_FRAME_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    cpu_s: float
    watch: NodeWatch
    frame: Frame
    no_frame: str
    def __init__(self, run_id: _Optional[str] = ..., cpu_s: _Optional[float] = ..., watch: _Optional[_Union[NodeWatch, _Mapping]] = ..., frame: _Optional[_Union[Frame, _Mapping]] = ..., no_frame: _Optional[str] = ...) -> None: ...

class NodeOrder(_message.Message):
    __slots__ = ("watches",)
    WATCHES_FIELD_NUMBER: _ClassVar[int]
    watches: _containers.RepeatedCompositeFieldContainer[NodeWatch]
    def __init__(self, watches: _Optional[_Iterable[_Union[NodeWatch, _Mapping]]] = ...) -> None: ...

class NodeWatch(_message.Message):
    __slots__ = ("for_s", "hz", "max_dim", "lane")
    FOR_S_FIELD_NUMBER: _ClassVar[int]
    HZ_FIELD_NUMBER: _ClassVar[int]
    MAX_DIM_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    for_s: float
    hz: float
    max_dim: int
    lane: int
    def __init__(self, for_s: _Optional[float] = ..., hz: _Optional[float] = ..., max_dim: _Optional[int] = ..., lane: _Optional[int] = ...) -> None: ...

class TakeLaunchRequest(_message.Message):
    __slots__ = ("run_id", "attempt", "taker", "node")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TAKER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    attempt: int
    taker: str
    node: str
    def __init__(self, run_id: _Optional[str] = ..., attempt: _Optional[int] = ..., taker: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class TakeLaunchReply(_message.Message):
    __slots__ = ("launch_json", "files")
    LAUNCH_JSON_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    launch_json: str
    files: _containers.RepeatedCompositeFieldContainer[NodeFile]
    def __init__(self, launch_json: _Optional[str] = ..., files: _Optional[_Iterable[_Union[NodeFile, _Mapping]]] = ...) -> None: ...

class NodeFile(_message.Message):
    __slots__ = ("path", "data")
    PATH_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    path: str
    data: bytes
    def __init__(self, path: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class ReportRunRequest(_message.Message):
    __slots__ = ("run_id", "started_json", "exit_json", "left_behind")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STARTED_JSON_FIELD_NUMBER: _ClassVar[int]
    EXIT_JSON_FIELD_NUMBER: _ClassVar[int]
    LEFT_BEHIND_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    started_json: str
    exit_json: str
    left_behind: str
    def __init__(self, run_id: _Optional[str] = ..., started_json: _Optional[str] = ..., exit_json: _Optional[str] = ..., left_behind: _Optional[str] = ...) -> None: ...

class ReportRunReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PutFileRequest(_message.Message):
    __slots__ = ("run_id", "path", "size", "sha256", "offset", "data")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    path: str
    size: int
    sha256: bytes
    offset: int
    data: bytes
    def __init__(self, run_id: _Optional[str] = ..., path: _Optional[str] = ..., size: _Optional[int] = ..., sha256: _Optional[bytes] = ..., offset: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class PutFileReply(_message.Message):
    __slots__ = ("next_offset",)
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    next_offset: int
    def __init__(self, next_offset: _Optional[int] = ...) -> None: ...
