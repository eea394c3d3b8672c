"""Words in `held_by` of started.json that others rely on."""

HIDDEN = "control files hidden"  # from the worker: it can write no exit.json
VISIBLE = "control files not hidden"
