-- Version 4: one column takes the name that the code and the protocol use.

ALTER TABLE runs RENAME COLUMN cancel_wished TO cancel_requested;
