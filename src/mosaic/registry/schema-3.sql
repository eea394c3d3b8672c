-- Version 3: what the worker that registered can do.

ALTER TABLE runs ADD COLUMN capabilities TEXT NOT NULL DEFAULT '';      -- JSON object; '' before it registered
