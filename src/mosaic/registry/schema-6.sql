-- Version 6: experiments, and what people write about a run afterwards.

CREATE TABLE experiments (
  name       TEXT PRIMARY KEY,
  document   TEXT NOT NULL,                           -- JSON object: worker, base, axes, seeds, max_parallel, search
  note       TEXT NOT NULL DEFAULT '',
  created_at REAL NOT NULL,
  revision   INTEGER NOT NULL                         -- of the last change of this row
);
ALTER TABLE runs ADD COLUMN experiment TEXT NOT NULL DEFAULT '';        -- name of its experiment; '' if it has none
ALTER TABLE runs ADD COLUMN axes TEXT NOT NULL DEFAULT '{}';            -- JSON object: the settings that its experiment varies, with dotted keys
ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN origin TEXT NOT NULL DEFAULT '';            -- where an imported run came from; '' if it ran here
CREATE INDEX runs_by_experiment ON runs (experiment, number) WHERE experiment <> '';
