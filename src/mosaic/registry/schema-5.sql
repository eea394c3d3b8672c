-- Version 5: algorithm, environment and seed, so that a listing of all runs need not parse their settings.
-- task_algo, task_env_id and task_seed are functions of registry/file.py.

ALTER TABLE runs ADD COLUMN algo TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN env_id TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN seed INTEGER;                               -- NULL: unknown
UPDATE runs SET algo = task_algo(settings), env_id = task_env_id(settings), seed = task_seed(settings);
