"""PyYAML's safe loader, stricter: a key may not be given twice, 1e-3 is a number, and `on` is a word."""

import re
from typing import Any

import yaml

# YAML 1.1, which PyYAML implements, wants a dot and a sign in 1.0e-3. Scripts are also written as JSON and by people.
FLOAT = re.compile(r"[-+]?(?:\d[\d_]*)(?:\.\d*)?[eE][-+]?\d+\Z")
# In YAML 1.1 yes, no, on and off are booleans too. `on` is an option of a run, and `off` a value of settings.
BOOL, TRUE_OR_FALSE = "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")


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


ScriptLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
ScriptLoader.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+0123456789"))
ScriptLoader.add_implicit_resolver(BOOL, TRUE_OR_FALSE, list("tTfF"))
