"""PyYAML's safe loader, stricter: a key may not be given twice, and 1e-3 is a number."""

import re
from typing import Any

import yaml

# YAML 1.1, which PyYAML implements, wants a dot and a sign in 1.0e-3. Scripts are also written as JSON and by people.
FLOAT = re.compile(r"[-+]?(?:\d[\d_]*)(?:\.\d*)?[eE][-+]?\d+\Z")


class ScriptLoader(yaml.SafeLoader):
    """Builds plain values only."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key in seen and key != "<<":
                raise yaml.MarkedYAMLError(problem=f"the key '{key}' is given twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


ScriptLoader.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+0123456789"))
