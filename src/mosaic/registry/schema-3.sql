-- Version 3: what the worker that registered can do, and whether it sends its heartbeats as calls.

ALTER TABLE runs ADD COLUMN capabilities TEXT NOT NULL DEFAULT '';      -- JSON object; '' before it registered
ALTER TABLE runs ADD COLUMN calls_beats INTEGER NOT NULL DEFAULT 0;     -- 1: it called Heartbeat; no file of the run says so
