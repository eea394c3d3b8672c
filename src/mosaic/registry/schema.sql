-- registry.db: every run and its history. The version is PRAGMA user_version; later versions only add to this schema.

CREATE TABLE runs (
  number          INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of submission: FIFO for the dispatcher, newest first in listings
  id              TEXT NOT NULL UNIQUE,
  name            TEXT NOT NULL,
  area            TEXT NOT NULL,
  worker_name     TEXT NOT NULL,
  state           TEXT NOT NULL,
  reason          TEXT NOT NULL DEFAULT '',
  attempt         INTEGER NOT NULL DEFAULT 0,
  created_at      REAL NOT NULL,
  updated_at      REAL NOT NULL,                      -- of the last move
  gpus_requested  INTEGER NOT NULL,
  gpus_mandatory  INTEGER NOT NULL,
  limits          TEXT NOT NULL,                      -- JSON object
  tags            TEXT NOT NULL,                      -- JSON list
  total_steps     INTEGER,
  idempotency_key TEXT NOT NULL DEFAULT '',
  session         TEXT NOT NULL DEFAULT '',           -- hash of the session token
  cancel_wished   INTEGER NOT NULL DEFAULT 0,
  waiting_for     TEXT NOT NULL DEFAULT '',
  held_by         TEXT NOT NULL DEFAULT '',
  telemetry       TEXT NOT NULL DEFAULT '',
  revision        INTEGER NOT NULL                    -- of the last change of this row
);
CREATE INDEX runs_by_state ON runs (state, number);
CREATE INDEX runs_by_revision ON runs (revision);
CREATE UNIQUE INDEX runs_by_key ON runs (idempotency_key) WHERE idempotency_key <> '';

CREATE TABLE history (
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  old    TEXT,                                        -- NULL: the submission itself
  new    TEXT NOT NULL,
  at     REAL NOT NULL,
  reason TEXT NOT NULL
);
CREATE INDEX history_by_run ON history (run_id);

-- The primary key ensures that a GPU has one owner. No cascade: a grant ends when its process tree is proven dead, not
-- when its run is deleted.
CREATE TABLE gpus (
  uuid     TEXT PRIMARY KEY,
  run_id   TEXT NOT NULL REFERENCES runs (id),
  position INTEGER NOT NULL
);
CREATE INDEX gpus_by_run ON gpus (run_id);

CREATE TABLE drained (
  uuid   TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  at     REAL NOT NULL
);

CREATE TABLE deleted (
  run_id   TEXT PRIMARY KEY,
  revision INTEGER NOT NULL
);
CREATE INDEX deleted_by_revision ON deleted (revision);

CREATE TABLE clock (revision INTEGER NOT NULL);       -- one row; increases with every change to the tables above
INSERT INTO clock VALUES (0);
