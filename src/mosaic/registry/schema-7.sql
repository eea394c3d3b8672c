-- Version 7: runs on other machines.

ALTER TABLE runs ADD COLUMN runs_on TEXT NOT NULL DEFAULT '';           -- '' for this machine, else CLUSTER or CLUSTER:PARTITION
ALTER TABLE runs ADD COLUMN job TEXT NOT NULL DEFAULT '';               -- what the cluster calls the job of its attempt
ALTER TABLE runs ADD COLUMN node TEXT NOT NULL DEFAULT '';              -- the machine of the cluster that it runs or ran on
