"""Notebooks without a kernel: their cells are run in order, in one namespace, and show what a notebook would show.

``python -m tests.notebooks`` runs those of ``examples/`` and writes what they show into them.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"

Output = dict[str, Any]


def read(path: Path) -> dict[str, Any]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5), path
    return notebook  # type: ignore[no-any-return]


def executed(notebook: dict[str, Any], name: str) -> Iterator[tuple[dict[str, Any], list[Output]]]:
    """The code cells, each with what it shows: the value of its last expression."""
    names: dict[str, Any] = {"__name__": name}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        tree = ast.parse("".join(cell["source"]), f"{name}, cell {number}")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{name}, cell {number}", "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"{name}, cell {number}", "eval"), names)
        yield cell, [] if value is None else [shown(value, number)]


def shown(value: Any, number: int) -> Output:
    html = hasattr(value, "_repr_html_")
    data = {"text/html": _lines(value._repr_html_())} if html else {"text/plain": _lines(repr(value))}
    return {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def write(path: Path) -> None:
    notebook = read(path)
    for number, (cell, outputs) in enumerate(executed(notebook, path.name), 1):
        cell["outputs"], cell["execution_count"] = outputs, number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for example in sys.argv[1:] or sorted(EXAMPLES.glob("*.ipynb")):
        write(Path(example))
        print(f"ran {example}")
