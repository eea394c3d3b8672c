-- Version 2: the env step at which an episode ended, NULL when the worker did not tell.

ALTER TABLE episodes ADD COLUMN global_step INTEGER;
