"""The conformance lab: the parts of `mosaic_sdk.testing.check_worker`.

ground.py     the folders that a worker receives, and what it wrote elsewhere
processes.py  running processes and their parents
trial.py      one start of a worker, as the daemon would start it
warm.py, fork_server.py  libraries that are imported once for several trials
questions.py  programs that inspect a worker in its own Python
dialogue.py   commands to an interactive worker, and its answers
scorecard.py  the lines of the result
bench.py      the checks, in the order of a worker's life
"""
