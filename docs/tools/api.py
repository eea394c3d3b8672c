"""The reference of the Python client and the SDK: signatures, fields and docstrings, read from the source files."""

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown import code, fence, join, plain, table

REPO = Path(__file__).parents[2]
SOURCES = {"mosaic": REPO / "src" / "mosaic", "mosaic_sdk": REPO / "sdk" / "src" / "mosaic_sdk"}
CLIENT = {  # module → the documented names; empty: all public ones
    "mosaic.client.synchronous": ("TrainerClient",),
    "mosaic.client.handle": ("RunHandle", "AsyncRunHandle"),
    "mosaic.catalog.request": ("RunOptions",),
    "mosaic.client.asynchronous": ("AsyncTrainerClient",),
    "mosaic.client.run": ("Run", "RunList"),
    "mosaic.model.listed": ("RunSummary", "Move"),
    "mosaic.model.states": ("RunState",),
    "mosaic.client.events": ("Step", "Episode", "Metric", "Lifecycle", "LogPiece", "Curve"),
    "mosaic.client.frames": ("Frame",),
    "mosaic.client.joined": ("joined_curve",),
    "mosaic.model.errors": (),
}
PARTS = {  # the classes whose methods a class inherits, and which are not documented themselves
    "AsyncTrainerClient": (
        ("mosaic.client.run_calls", "RunCalls"),
        ("mosaic.client.experiment_calls", "ExperimentCalls"),
        ("mosaic.client.import_calls", "ImportCalls"),
    ),
}
SAME_AS = {"TrainerClient": ("mosaic.client.asynchronous", "AsyncTrainerClient")}  # whose docstrings its methods share
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Field:
    """A field of a dataclass, with the comment behind it."""

    name: str
    kind: str
    default: str
    comment: str


def python_client() -> str:
    intro = (
        "Examples are in [the how-to](../howto/python-client.md). The clients, the handles, `RunOptions`, `Run` and "
        "`Frame` can be imported from `mosaic.client`, everything from the module in its heading."
    )
    parts = [part for module, names in CLIENT.items() for part in module_parts(module, names)]
    return join("# Python client", intro, *parts)


def sdk() -> str:
    folder = SOURCES["mosaic_sdk"]
    intro = "What a worker imports. How the parts work together is in [the worker guide](../howto/new-worker.md)."
    parts = [part for module in modules_in(folder) for part in module_parts(module)]
    return join("# Worker SDK", intro, *parts)


def modules_in(folder: Path) -> Iterator[str]:
    """Public modules: of the package first, then of its subpackages. `autowrap` and `lab` are not for workers."""
    paths = sorted(folder.rglob("*.py"), key=lambda path: (len(path.parts), path))
    for path in paths:
        parts = path.relative_to(folder.parent).with_suffix("").parts
        if not any(part.startswith("_") or part in ("autowrap", "lab") for part in parts):
            yield ".".join(parts)


def module_parts(module: str, names: tuple[str, ...] = ()) -> Iterator[str]:
    tree = parse(module)
    found = [node for node in tree.body if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and is_public(node.name)]
    chosen = [node for node in found if not names or node.name in names]
    missing = set(names) - {node.name for node in chosen}
    if missing:
        raise LookupError(f"{module} has no {', '.join(sorted(missing))}: correct CLIENT in {Path(__file__).name}")
    if not chosen:
        return
    yield f"## {module}"
    if not names:
        yield docstring(tree)
    for node in chosen:
        yield f"### {node.name}"
        if isinstance(node, ast.ClassDef):
            # Clients, handles and errors are made by MOSAIC.
            yield from class_parts(node, source_lines(module), module.startswith("mosaic_sdk"))
        else:
            yield from function_parts(node)


def class_parts(node: ast.ClassDef, lines: list[str], is_made_by_users: bool = False) -> Iterator[str]:
    yield docstring(node)
    rows = [(code(one.name), code(one.kind), code(one.default), plain(one.comment)) for one in fields_of(node, lines)]
    yield table(("field", "type", "default", ""), rows)
    yield table(("member", ""), members_of(node, lines))
    if is_made_by_users:
        yield constructor(node)
    shared = methods_of(class_in(*SAME_AS[node.name])[0]) if node.name in SAME_AS else {}
    for name, method in methods_of(node).items():
        yield from function_parts(method, shared.get(name, method))


def constructor(node: ast.ClassDef) -> str:
    """How an object is made. A dataclass shows it by its fields."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            arguments = ast.unparse(item.args).removeprefix("self").removeprefix(", ")
            return join(fence(f"{node.name}({arguments})".replace("'", '"'), "python"), docstring(item))
    return ""


def methods_of(node: ast.ClassDef) -> dict[str, Function]:
    """Its public methods, then those of its parts."""
    found = {item.name: item for item in node.body if isinstance(item, FUNCTIONS) and is_public(item.name)}
    for part in PARTS.get(node.name, ()):
        found |= methods_of(class_in(*part)[0])
    return found


def fields_of(node: ast.ClassDef, lines: list[str]) -> list[Field]:
    return [
        Field(item.target.id, ast.unparse(item.annotation), default_of(item), comment_behind(item, lines))
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and is_public(item.target.id)
    ]


def members_of(node: ast.ClassDef, lines: list[str]) -> list[tuple[str, str]]:
    """The members of an enumeration, each with the comment behind it."""
    if not any(ast.unparse(base).endswith("Enum") for base in node.bases):
        return []
    found = [item for item in node.body if isinstance(item, ast.Assign)]
    return [(code(ast.unparse(item.targets[0])), plain(comment_behind(item, lines))) for item in found]


def comment_behind(item: ast.stmt, lines: list[str]) -> str:
    return lines[(item.end_lineno or 1) - 1][item.end_col_offset or 0 :].partition("#")[2].strip()


def default_of(item: ast.AnnAssign) -> str:
    """The default as source text; for `field(default_factory=dict)` an empty dict."""
    value = item.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        factory = next((ast.unparse(word.value) for word in value.keywords if word.arg == "default_factory"), "")
        return {"dict": "{}", "list": "[]"}.get(factory, factory)
    return ast.unparse(value) if value else ""


def function_parts(node: Function, described: Function | None = None) -> Iterator[str]:
    is_property = any(ast.unparse(mark) == "property" for mark in node.decorator_list)
    yield fence(property_line(node) if is_property else signature(node), "python")
    yield docstring(node) or docstring(described or node)


def property_line(node: Function) -> str:
    return f"{node.name}: {ast.unparse(node.returns)}" if node.returns else node.name


def signature(node: Function) -> str:
    prefix = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    arguments = ast.unparse(node.args).removeprefix("self, ").removeprefix("self").removeprefix("cls, ")
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{prefix} {node.name}({arguments}){result}".replace("'", '"')


def docstring(node: ast.AST) -> str:
    """The docstring as Markdown. Blocks after `Example::` become code, and drawings become plain text blocks."""
    text = ast.get_docstring(node) or ""  # type: ignore[arg-type]
    return join(*(paragraph(block) for block in text.split("\n\n"))) if text else ""


def paragraph(block: str) -> str:
    lines = block.splitlines()
    if block.startswith("    "):
        return fence(textwrap.dedent(block), "python" if is_program(textwrap.dedent(block)) else "text")
    if any(line.startswith((" ", "├", "└", "│")) for line in lines):
        return fence(block)
    if all(line[:1].isdigit() or line.startswith("   ") for line in lines):
        return block
    return plain(block.removesuffix("::") + (":" if block.endswith("::") else ""))


def is_program(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def is_public(name: str) -> bool:
    return not name.startswith("_")


def parse(module: str) -> ast.Module:
    return ast.parse(path_of(module).read_text())


def source_lines(module: str) -> list[str]:
    return path_of(module).read_text().splitlines()


def path_of(module: str) -> Path:
    package, _, rest = module.partition(".")
    return (SOURCES[package] / rest.replace(".", "/")).with_suffix(".py")


def class_in(module: str, name: str) -> tuple[ast.ClassDef, list[str]]:
    found = [node for node in parse(module).body if isinstance(node, ast.ClassDef) and node.name == name]
    return found[0], source_lines(module)
