"""The rooms of the package: what each may import, and that no import goes round (docs/how-it-is-built.md).

Imports are read from the source, also those inside functions and those for type checkers only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "etalis_rules": ROOT / "rules" / "etalis_rules",
    "etalis_compiler": ROOT / "compiler" / "etalis_compiler",
    "etalis_py": ROOT / "etalis_py",
}

API = {"engine", "warm_up", "notebook", "whynot", "etalis_py"}
"""What puts the rooms together for users."""

ALLOWED: dict[str, set[str]] = {
    "values": set(),
    "events": {"values"},
    "knowledge": {"values", "events"},
    "sparql": {"values", "knowledge", "events"},
    "kernel": {"values", "knowledge", "events"},
    "executors.rows": {"kernel", "sparql", "values", "knowledge", "events"},
    "executors.columns": {"kernel", "sparql", "values", "knowledge", "events", "executors.rows", "executors.windows"},
    "executors.windows": {"kernel", "sparql", "values", "knowledge", "events", "streams"},
    "streams": {"values", "events"},
    "connectors": {"events", "streams", "values"},
    "durable": {"connectors", "events", "streams"},
    "containers": {"events", "streams", "values"},
    "replays": {"events", "streams"},
}
CORE = set(ALLOWED) - {"containers", "replays"}
ALLOWED |= {
    **{name: (CORE - {name}) | (API - {name}) for name in API},
    "engine": CORE | {"containers", "whynot", "notebook"},
    "notebook": CORE - {"executors.rows", "executors.columns", "executors.windows"},
    "testing": {"connectors", "durable", "kernel", "events", "executors.windows", "streams", "values"} | API,
    "spark": (CORE - {"executors.columns", "executors.rows"}) | {"containers"} | API,
    "editor": API,
    "cli": CORE | {"containers", "editor", "replays", "spark", "testing"} | API,
}
AHEAD = {("engine", "whynot"), ("engine", "notebook"), ("kernel", "notebook"), ("kernel", "streams")}
"""Methods of a value that lead on to what explains, draws or tabulates it."""
TOOLS = {"extras", "garbage", "lazy_imports", "numba_cache", "etalis_rules", "etalis_compiler"}
"""What every room may know."""
WITHOUT_QUERIES = {"connectors", "durable", "events", "replays", "sparql", "streams", "values"}
"""Rooms that work with terms, events and patterns, and need no compiler for that."""


def modules() -> dict[str, Path]:
    """The modules by name."""
    return {
        ".".join([package, *file.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__"): file
        for package, folder in PACKAGES.items()
        for file in folder.rglob("*.py")
    }


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements in a node, also those in functions, without the expressions, which are many more."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, block, ()):
            if isinstance(inner, ast.stmt):
                yield inner
            yield from statements(inner)


@cache
def imported(module: str, file: Path) -> tuple[str, ...]:
    """The names that a module imports, absolute."""
    return tuple(_imported(module, file))


def _imported(module: str, file: Path) -> Iterator[str]:
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in statements(parsed(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")
                base = ".".join([*above[: len(above) - node.level + 1], *([base] if base else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def graph() -> dict[str, set[str]]:
    """Which module imports which."""
    there = modules()
    edges: dict[str, set[str]] = {}
    for module, file in there.items():
        names = set(imported(module, file))
        edges[module] = {name if name in there else name.rpartition(".")[0] for name in names} & set(there) - {module}
    return edges


def room_of(module: str) -> str:
    """``etalis_py.executors.rows.run.state`` is in ``executors.rows``; the other packages are rooms."""
    package, *inner = module.split(".")
    if package != "etalis_py" or not inner:
        return package
    return ".".join(inner[: 2 if inner[0] == "executors" else 1])


def test_no_room_imports_what_it_may_not_know() -> None:
    wrong = []
    for module, others in graph().items():
        room = room_of(module)
        for other in others:
            there = room_of(other)
            if there == room or (room, there) in AHEAD:
                continue
            if room in ("etalis_rules", "etalis_compiler"):
                allowed = {"etalis_rules"} if room == "etalis_compiler" else set()
            else:
                tools = TOOLS - {"etalis_compiler"} if room in WITHOUT_QUERIES else TOOLS
                allowed = tools | ALLOWED.get(room, set())
            if there not in allowed:
                wrong.append(f"{module} imports {other}: {room} may not know {there}")
    assert not wrong, "\n".join(sorted(wrong))


def test_no_imports_go_round() -> None:
    edges = {module: set(others) for module, others in graph().items()}
    edges["etalis_py.engine.program"].remove("etalis_py.whynot")  # Program.why_not leads to what runs programs
    while free := [module for module, others in edges.items() if not others & set(edges)]:
        for module in free:
            del edges[module]
    needed = {other for others in edges.values() for other in others & set(edges)}
    assert not (set(edges) & needed), f"imports go round between {', '.join(sorted(set(edges) & needed))}"


def test_no_private_name_is_imported_across_modules() -> None:
    there = modules()
    wrong = [
        f"{module} imports {name}"
        for module, file in there.items()
        for name in imported(module, file)
        if name.startswith(tuple(PACKAGES)) and name.rpartition(".")[2].startswith("_") and not name.endswith("__")
    ]
    assert not wrong, "\n".join(sorted(wrong))


MOST_PARAMETERS = 9
COMPILED = {"kernel", "njit", "part", "section"}
"""What Numba compiles takes columns as they are: it knows no objects."""


def test_functions_with_many_parameters_take_options_as_one_value() -> None:
    wrong = []
    for module, file in modules().items():
        for node in statements(parsed(file)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if any(isinstance(d, ast.Name) and d.id in COMPILED for d in node.decorator_list):
                continue
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if len(names) - (names[:1] in (["self"], ["cls"])) > MOST_PARAMETERS:
                wrong.append(f"{module}.{node.name} has {len(names)} parameters")
    assert not wrong, "\n".join(sorted(wrong))
