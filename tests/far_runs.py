"""What tests ask about runs on a cluster whose nodes have a state folder of their own (`lab.node_root`)."""

import hashlib

GRACE = {"grace_s": 2}


def steps_of(lab, run):
    return [event["step_index"] for event in lab.events(run, "step")]


def node_folder(lab, run):
    """Its folder on the node."""
    return lab.node_root.run("runs", run.run_id)


def wait_for_steps(lab, run, count=1):
    return lab.wait_until_run(run, lambda now: now.summary.steps >= count, f"{count} steps", 90)


def digests(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def launch_name(run):
    return f"mosaic-{run.run_id}-1"
