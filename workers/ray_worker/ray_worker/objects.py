"""Ray's object store, within this process: RLlib without a Ray instance.

RLlib puts its config and weights into the object store even if it has no other processes, and would start a Ray
instance for that: eight processes, half a minute, 700 MB. A training whose environments and learner are all in its own
process (the default) needs nothing else of Ray, so it gets these two functions in place of `ray.put` and `ray.get`. As
in Ray, an object is a copy: changes made after `put` are not seen by `get`.
"""

import os
from typing import Any


def keep_objects_here() -> None:
    """From here on ray.put and ray.get work without a Ray instance, and nothing starts one."""
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # read when ray is imported
    import ray
    from ray import cloudpickle

    class Object(ray.ObjectRef):  # type: ignore[misc]
        """A reference that holds what it refers to, so that both are freed together."""

        data = b""

    def put(value: Any, **options: Any) -> Any:
        made = Object(os.urandom(28))
        made.data = cloudpickle.dumps(value)
        return made

    def get(references: Any, **options: Any) -> Any:
        if isinstance(references, list):
            return [get(one) for one in references]
        return cloudpickle.loads(references.data)

    ray.put, ray.get = put, get
