"""Asking clingo, in a process of its own.

clingo keeps every symbol it has seen for the life of the process (85 to 160 bytes each), so a program over changing
knowledge is solved in a process that ends with the answer.  Terms are numbered at this border and never become
symbols, and the shown atoms of an answer come back as one line of text.  (Reading 743,241
atoms through clingo's Python objects takes 5.4 s, a ground program with a line for each 3.9 s, this 2.2 s, of which
1.2 s is the reasoning.)
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from importlib import resources

from etalis_py.knowledge.errors import KnowledgeError


def program_text(name: str) -> str:
    """The text of one of the background programs, such as ``rdfs``."""
    return resources.files("etalis_rules").joinpath("lp", f"{name}.lp").read_text(encoding="utf-8")


def answer_set(program: str, constants: Mapping[str, int], *, name: str) -> bytes:
    """The shown atoms of the answer set of a program that has just one, separated by spaces."""
    atoms = _run(program, constants, ["--models=1"], name)
    if atoms is None:
        raise KnowledgeError("the program has no answer set", source=name)
    return atoms


def consequences(program: str, constants: Mapping[str, int], *, brave: bool, name: str) -> str | None:
    """The shown atoms that are true in all answer sets (``brave``: in some); ``None`` when there is no answer set."""
    mode = "brave" if brave else "cautious"
    atoms = _run(program, constants, ["--models=0", f"--enum-mode={mode}"], name)
    if atoms is None:
        return None
    # An estimate is printed each time it gets better, and after it how good it is; the last one is the answer.
    return [line for line in atoms.decode().split("\n") if not line.startswith("Consequences:")][-1]


def _run(program: str, constants: Mapping[str, int], options: list[str], name: str) -> bytes | None:
    command = [sys.executable, "-m", "clingo", *options, "--verbose=0", "--outf=0", "--warn=none", "-"]
    command += [f"--const={constant}={value}" for constant, value in constants.items()]
    try:
        done = subprocess.run(command, input=program.encode(), capture_output=True, check=False)
    except OSError as error:
        raise KnowledgeError(
            f"clingo could not be started as {sys.executable!r} -m clingo: {error}",
            source=name,
            hint="run from an interpreter that can start processes and has clingo installed",
        ) from error
    atoms, _, verdict = done.stdout.rstrip().rpartition(b"\n")
    if verdict == b"SATISFIABLE":  # the exit code tells less: it differs between the ways of starting clingo
        return atoms
    if verdict == b"UNSATISFIABLE":
        return None
    said = (done.stderr or done.stdout[-1000:]).decode(errors="replace").strip()
    said = said.partition("Traceback (most recent call last)")[0].strip() or said.splitlines()[-1]
    raise KnowledgeError(f"clingo gave no answer (exit code {done.returncode}): {said}", source=name)
