"""Programs for the worker's own Python, which may be 3.9. The answer is the last line of output, in JSON."""

# package:function → metadata, capabilities, schema, and the folder of its package ("" for a single module)
DESCRIBE = """
import dataclasses, importlib, json, os, sys
name, _, function = sys.argv[1].partition(":")
module = importlib.import_module(name)
answer = getattr(module, function)()
pair = answer if isinstance(answer, tuple) else ({}, answer)
def plain(value):
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else getattr(value, "__dict__", str(value))
place = os.path.dirname(module.__file__) if hasattr(module, "__path__") else ""
print("\\n" + json.dumps([*pair, getattr(module, "get_worker_schema", dict)(), place], default=plain))
"""

# module, config → whether the round trip is equal, its run_id and its seed; null without a config class
ROUND_TRIP = """
import importlib.util, inspect, json, sys
module = importlib.import_module(sys.argv[1]) if importlib.util.find_spec(sys.argv[1]) else None
found = [c for c in (vars(module) if module else {}).values() if inspect.isclass(c) and c.__module__ == module.__name__
         and hasattr(c, "from_dict") and hasattr(c, "to_dict")]
if not found:
    print("\\n" + json.dumps(None)); sys.exit()
keys = json.loads(sys.argv[2])
once = found[0].from_dict(dict(keys)).to_dict()
twice = found[0].from_dict(dict(once)).to_dict()
print("\\n" + json.dumps([once == twice, once.get("run_id"), once.get("seed")], default=str))
"""
