"""How strong tests are: change one operator of a module at a time, and see whether they notice.

    python -m tests.mutants compiler/etalis_compiler/known_at_end.py --tests tests/engine/test_timeless.py
    python -m tests.mutants etalis_py/sparql/*.py --tests tests/engine --count 20 --seed 7

Each change is made in a copy of the repository, in a folder of its own.  What no test notices is printed: it is either
a test that is missing, or a change that makes no difference.
"""

from __future__ import annotations

import argparse
import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import environ, pathsep
from pathlib import Path
from random import Random, randrange
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
PATIENCE = 900
"""Seconds after which a run counts as endless, and so as a change that was noticed."""

_OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Eq: ast.NotEq, ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.Is: ast.IsNot, ast.In: ast.NotIn},
    **{ast.And: ast.Or, ast.Add: ast.Sub, ast.BitAnd: ast.BitOr, ast.Mult: ast.Add},
}
SWAPPED = {**_OPPOSITES, **{new: old for old, new in _OPPOSITES.items() if old is not ast.Mult}}


@dataclass(frozen=True)
class Place:
    """What can be changed in a module: a field of its nth node, with the other value."""

    file: Path
    node: int
    field: str
    value: object


@dataclass(frozen=True)
class Mutant:
    """A module with one change."""

    file: Path
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}\n  - {self.before}\n  + {self.after}"


def changed(node: ast.AST) -> Iterator[tuple[str, object]]:
    """The fields of a node that can be changed, each with its other value."""
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                if type(op) in SWAPPED:
                    yield "ops", [*ops[:i], SWAPPED[type(op)](), *ops[i + 1 :]]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPPED:
            yield "op", SWAPPED[type(op)]()
        case ast.UnaryOp(op=ast.Not()):
            yield "operand", ast.UnaryOp(ast.Not(), node.operand)
        case ast.Constant(value=bool() as value):
            yield "value", not value
        case ast.Constant(value=int() as value):
            yield "value", value + 1


def annotations(node: ast.AST) -> list[ast.expr]:
    """The types that a node declares."""
    declared = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    return [hint for hint in declared if hint is not None]


def places(file: Path, root: Path = ROOT) -> Iterator[Place]:
    """Every operator, truth value and number of a module; annotations have no effect and stay."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    typing = {id(part) for node in ast.walk(tree) for hint in annotations(node) for part in ast.walk(hint)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) not in typing:
            yield from (Place(file, number, field, value) for field, value in changed(node))


def mutant_of(place: Place, root: Path = ROOT) -> Mutant:
    """The module with the change of one place."""
    tree = ast.parse((root / place.file).read_text(encoding="utf-8"))
    node: Any = next(node for number, node in enumerate(ast.walk(tree)) if number == place.node)
    before = ast.unparse(node)
    setattr(node, place.field, place.value)
    return Mutant(place.file, node.lineno, before, ast.unparse(node), ast.unparse(tree) + "\n")


def is_noticed(mutant: Mutant, tests: Sequence[str], copy: Path) -> bool:
    """Whether the tests fail on the mutant, which is put into the copy for as long as they run."""
    file = copy / mutant.file
    kept = file.read_bytes()
    file.write_text(mutant.text, encoding="utf-8")
    try:
        return run(tests, copy, mutant) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_bytes(kept)


def run(tests: Sequence[str], copy: Path, mutant: Mutant | None = None) -> int:
    """Run the tests on the copy until one fails, with few examples; returns pytest's exit code.

    Numba keeps the machine code of a kernel beside the module of the kernel, also if another module, whose code is
    inlined, has changed.  So a change of such a module is tried with nothing kept.
    """
    packages = pathsep.join(str(copy / part) for part in ("", "compiler", "rules"))
    command = [sys.executable, "-m", "pytest", "-x", "--few", "-p", "no:cacheprovider", *tests]
    environment = {**environ, "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1"}
    nothing = subprocess.DEVNULL
    with TemporaryDirectory() as cache:
        if mutant is not None and "numba_cache" in mutant.text:
            environment["NUMBA_CACHE_DIR"] = cache
        return subprocess.run(
            command, cwd=copy, env=environment, stdout=nothing, stderr=nothing, timeout=PATIENCE, check=False
        ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="modules, as paths from the root of the repository")
    parser.add_argument("--tests", nargs="+", required=True, metavar="TESTS", help="what should notice the changes")
    parser.add_argument("--count", type=int, help="so many changes, chosen at random (default: all)")
    parser.add_argument("--seed", type=int, default=randrange(2**32), help="chooses the same changes again")
    options = parser.parse_args()
    made = [place for file in options.files for place in places(file)]
    if options.count is not None and options.count < len(made):
        made = Random(options.seed).sample(made, options.count)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "out", "node_modules"))
        if run(options.tests, copy) != 0:
            parser.error("the tests fail, or cannot be run, without any change: repair that first")
        unnoticed = 0
        for number, mutant in enumerate(map(mutant_of, made), 1):
            noticed = is_noticed(mutant, options.tests, copy)
            unnoticed += not noticed
            print("." if noticed else f"\n{number}: {mutant}", end="" if noticed else "\n", flush=True)
    print(f"\n{len(made)} changes, {unnoticed} unnoticed (--seed {options.seed})")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    raise SystemExit(main())
