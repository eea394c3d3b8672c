-- Version 3: the capabilities that the worker registered, and whether it sends heartbeats by gRPC.

ALTER TABLE runs ADD COLUMN capabilities TEXT NOT NULL DEFAULT '';      -- JSON object; '' before registration
ALTER TABLE runs ADD COLUMN calls_beats INTEGER NOT NULL DEFAULT 0;     -- 1: it has called Heartbeat; nothing in the run's folder says so
