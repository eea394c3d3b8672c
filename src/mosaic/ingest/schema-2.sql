-- Version 2: the env step at which an episode ended, NULL if unknown.

ALTER TABLE episodes ADD COLUMN global_step INTEGER;
