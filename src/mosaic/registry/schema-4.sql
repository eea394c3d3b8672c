-- Version 4: a column gets the name that the code and the protocol use.

ALTER TABLE runs RENAME COLUMN cancel_wished TO cancel_requested;
