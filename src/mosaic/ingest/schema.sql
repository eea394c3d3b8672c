-- The telemetry of one run. A publish is committed in one transaction together with the stream's next_offset, so the
-- file and the sender always agree about what is stored.
--
-- seq counts 1, 2, 3 … over steps, episodes, metrics and lifecycle together: each number is in exactly one of them.
-- A NaN is stored as the text 'nan': SQLite would turn it into NULL, which means "missing" here.

CREATE TABLE steps (
  seq           INTEGER PRIMARY KEY,
  ts_ns         INTEGER NOT NULL,
  step_index    INTEGER NOT NULL,
  reward        REAL,
  env_index     INTEGER NOT NULL,
  agent_id      TEXT    NOT NULL,
  episode_index INTEGER NOT NULL,
  terminated    INTEGER NOT NULL,
  truncated     INTEGER NOT NULL,
  extra         BLOB    NOT NULL
);
-- Not unique: a library may print a step twice; seq is the identity. Maintained while writing, at about 1.3 µs per row:
-- building it at the end would block the writer for seconds at 10 M rows.
CREATE INDEX steps_by_place ON steps (env_index, agent_id, episode_index, step_index);

CREATE TABLE episodes (
  seq           INTEGER PRIMARY KEY,
  ts_ns         INTEGER NOT NULL,
  episode_index INTEGER NOT NULL,
  total_reward  REAL    NOT NULL,
  steps         INTEGER NOT NULL,
  env_index     INTEGER NOT NULL,
  agent_id      TEXT    NOT NULL,
  terminated    INTEGER NOT NULL,
  truncated     INTEGER NOT NULL,
  extra         BLOB    NOT NULL
);

-- One row per line, with any number of values. Loggers repeat the same names, so a row only refers to them.
CREATE TABLE metrics (
  seq        INTEGER PRIMARY KEY,
  ts_ns      INTEGER NOT NULL,
  step       INTEGER NOT NULL,
  name_set          NOT NULL,  -- an id in name_sets, or the JSON list itself if there are too many sets
  value_list BLOB   NOT NULL,  -- little-endian doubles, one per name
  extra      BLOB   NOT NULL
);
CREATE TABLE name_sets (
  id    INTEGER PRIMARY KEY,
  names TEXT NOT NULL  -- JSON list
);

CREATE TABLE lifecycle (
  seq     INTEGER PRIMARY KEY,
  ts_ns   INTEGER NOT NULL,
  event   TEXT NOT NULL,
  payload BLOB NOT NULL,
  extra   BLOB NOT NULL
);

-- Keyed by the offset in the spool. stream: 0 stdout, 1 stderr.
CREATE TABLE logs (
  stream INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  text   BLOB NOT NULL
);
CREATE UNIQUE INDEX logs_by_offset ON logs (stream, offset);

CREATE TABLE rejects (
  stream INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  length INTEGER NOT NULL,
  reason TEXT NOT NULL,
  head   BLOB NOT NULL
);
CREATE INDEX rejects_by_offset ON rejects (stream, offset);

CREATE TABLE gaps (
  stream INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  length INTEGER NOT NULL,
  reason TEXT NOT NULL,
  seq    INTEGER NOT NULL DEFAULT 0  -- of the telemetry_gap line that reported it; 0: the tailer found it
);
-- A gap may come with an empty range, which the offset does not protect against being sent twice.
CREATE UNIQUE INDEX gaps_by_offset ON gaps (stream, offset, length, reason, seq);

CREATE TABLE cursor (
  stream      INTEGER PRIMARY KEY,
  next_offset INTEGER NOT NULL,
  rejects     INTEGER NOT NULL
);
INSERT INTO cursor VALUES (0, 0, 0), (1, 0, 0);

-- Curves: named sequences of (step, value) points; see rollup.py. `state` has the unfinished buckets at the time of
-- meta.snapshot.
CREATE TABLE curves (
  id    INTEGER PRIMARY KEY,
  name  TEXT NOT NULL UNIQUE,
  state BLOB
);
CREATE TABLE rollups (
  curve     INTEGER NOT NULL,
  level     INTEGER NOT NULL,  -- 0, 1, 2: buckets of 64, 1,024, 16,384 consecutive points
  bucket    INTEGER NOT NULL,
  n         INTEGER NOT NULL,  -- all points, including NaN
  nans      INTEGER NOT NULL,
  total     REAL,              -- without NaN; NULL: the sum is NaN, from adding opposite infinities
  low       REAL,              -- NULL: every point is NaN
  high      REAL,
  step_low  INTEGER NOT NULL,
  step_high INTEGER NOT NULL,
  step_last INTEGER NOT NULL,
  PRIMARY KEY (curve, level, bucket)
) WITHOUT ROWID;
-- The packed points of each bucket of 64: a curve's raw points without reading the rows of other lines.
CREATE TABLE chunks (
  id         INTEGER PRIMARY KEY,  -- curve << 32 | bucket
  steps      BLOB NOT NULL,        -- little-endian int64
  value_list BLOB NOT NULL         -- little-endian double
);

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value BLOB NOT NULL
);
