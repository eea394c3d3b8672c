"""The worker of a whole library, such as Stable-Baselines3: what is the same in all of them.

    settings.py    algo, env_id, mode, policy_path …: the base class of its config
    schema.py      its schema, with the hyperparameters of each algorithm
    training.py    one training: heartbeats, checkpoints, SIGTERM, the summary
    stopping.py    SIGTERM, noticed between two steps
    saving.py      checkpoints with their settings, and which of them may be loaded
    evaluating.py  a checkpoint's policy on unseen seeds
    playing.py     interactive mode: one environment and one policy
    frames.py      environments that must not be shown
    cli.py         the command that MOSAIC starts

The worker calls the library's own loop and supplies what only it knows: how its model is made, saved, loaded and asked
for an action. workers/tianshou_worker is a small example.
"""
