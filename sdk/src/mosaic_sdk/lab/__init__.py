"""The conformance lab: what `mosaic_sdk.testing.check_worker` is made of.

ground.py     the folders a worker is given, and what it wrote elsewhere
processes.py  what lives, and whose child it is
trial.py      one start of a worker, as the daemon would start it
questions.py  what a worker's Python is asked about it
dialogue.py   commands and answers with an interactive worker
scorecard.py  the lines of the result
bench.py      the checks, in the order of a worker's life
"""
