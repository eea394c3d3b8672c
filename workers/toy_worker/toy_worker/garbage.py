"""Lines that no parser accepts. Each is printed whole, with its newline."""

GARBAGE = (
    ("invalid-utf8", b"caf\xe9 \xff\xfe\x00 is not UTF-8\n"),
    ("invalid-utf8-in-step", b'{"event_type":"step","step_index":1,"agent_id":"\xff\xfe"}\n'),
    ("broken-json", b'{"event_type":"step","step_index":\n'),
    ("not-an-object", b'["event_type","step"]\n'),
    ("unknown-kind", b'{"event_type":"dance","step_index":1}\n'),
    ("text-as-index", b'{"event_type":"step","step_index":"three"}\n'),
    ("huge-index", b'{"event_type":"step","step_index":1e400}\n'),
    ("index-over-64-bits", b'{"event_type":"step","step_index":99999999999999999999999}\n'),
    ("no-index", b'{"event_type":"step"}\n'),
    ("episode-without-fields", b'{"event_type":"episode"}\n'),
    ("metric-without-value", b'{"event_type":"metric","name":"toy/none","step":1}\n'),
    ("metric-list", b'{"event_type":"metric","name":"toy/list","value":[1],"step":1}\n'),
    ("nan", b'{"event_type":"metric","name":"toy/nan","value":NaN,"step":1}\n'),
    ("infinity", b'{"event_type":"metric","name":"toy/inf","value":-Infinity,"step":1}\n'),
    ("deep", b'{"event_type":"step","step_index":1,"info":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"),
    ("empty", b"\n"),
    ("carriage-return", b"50 %\r100 %\r\n"),
    ("two-objects", b'{"event_type":"step","step_index":1}{"event_type":"step","step_index":2}\n'),
)
