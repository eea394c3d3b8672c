-- Version 2: the resources of a run, its parent, and the settings in force.

ALTER TABLE runs ADD COLUMN cpus REAL NOT NULL DEFAULT 1;
ALTER TABLE runs ADD COLUMN memory_mb INTEGER NOT NULL DEFAULT 0;       -- 0: unknown
ALTER TABLE runs ADD COLUMN parent_run_id TEXT NOT NULL DEFAULT '';     -- may be a deleted run
ALTER TABLE runs ADD COLUMN relation TEXT NOT NULL DEFAULT '';          -- 'resume' or 'eval'
ALTER TABLE runs ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';        -- JSON object with dotted keys, defaults included
ALTER TABLE runs ADD COLUMN settings_note TEXT NOT NULL DEFAULT '';     -- why the settings were not checked
ALTER TABLE runs ADD COLUMN config_hash TEXT NOT NULL DEFAULT '';       -- of the config as submitted; '' before version 2
CREATE INDEX runs_by_parent ON runs (parent_run_id) WHERE parent_run_id <> '';
