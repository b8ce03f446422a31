"""Runs clingo in a separate process.

clingo keeps every symbol it has seen for the life of the process (85 to 160 bytes each), so a program over changing
knowledge is solved in a process that ends with the answer.  Terms are numbered at this border and never become symbols,
and the shown atoms of an answer come back as one line of text.  (Reading 743,241 atoms through clingo's Python objects
takes 5.4 s, a ground program with one line per atom 3.9 s, and this 2.2 s, of which 1.2 s is reasoning.)

Starting the process takes as long as closing a schema of a thousand axioms, so the small programs of a load share one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import resources
from threading import Timer
from types import TracebackType

from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.values.limits import LIMITS, Limits

OPTIMAL = "optN"
"""clingo's mode that first finds an optimum and then enumerates the equally good answer sets."""


def program_text(name: str) -> str:
    """The text of one of the background programs, such as ``rdfs``."""
    return resources.files("etalis_rules").joinpath("lp", f"{name}.lp").read_text(encoding="utf-8")


_LIMITED = (
    "import resource, runpy, sys; n = int(sys.argv.pop(1)); resource.setrlimit(resource.RLIMIT_DATA, (n, n)); "
    "runpy.run_module('clingo', run_name='__main__', alter_sys=True)"
)


_SMALL = 100_000
"""Characters of a program up to which starting a process is most of the time."""
_PATIENCE = 10.0
"""Seconds after which a program gets a process of its own, whose time has a limit."""
_ONE_AFTER_THE_OTHER = """
import sys
import clingo
from resource import RLIMIT_DATA, setrlimit
setrlimit(RLIMIT_DATA, (int(sys.argv[1]), int(sys.argv[1])))
while header := sys.stdin.buffer.readline().split():
    control = clingo.Control(["--warn=none", *(f"--const={constant.decode()}" for constant in header[1:])])
    control.add("base", [], sys.stdin.buffer.read(int(header[0])).decode())
    control.ground([("base", [])])
    with control.solve(yield_=True) as models:
        atoms = " ".join(map(str, next(iter(models)).symbols(shown=True))).encode()
    sys.stdout.buffer.write(b"%d\\n%b" % (len(atoms), atoms))
    sys.stdout.buffer.flush()
"""

Ask = Callable[..., bytes]
"""``answer_set``, or the method of that name of a ``SharedProcess``."""


class SharedProcess:
    """A process that solves one program after the other, from the first one until the end of a ``with`` block."""

    __slots__ = ("_limits", "_process")

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> SharedProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def answer_set(self, program: str, constants: Mapping[str, int], *, name: str) -> bytes:
        """As the function ``answer_set``, which solves large programs, and says what is wrong with others."""
        text = program.encode()
        if len(text) <= _SMALL:
            try:
                return self._answer(text, constants)
            except (OSError, ValueError):  # there is no such process, or it has ended
                self._end()
        return answer_set(program, constants, name=name, limits=self._limits)

    def _answer(self, text: bytes, constants: Mapping[str, int]) -> bytes:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _ONE_AFTER_THE_OTHER, str(self._limits.grounding_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        sent, received = self._process.stdin, self._process.stdout
        assert sent is not None
        assert received is not None
        header = " ".join([str(len(text)), *(f"{constant}={value}" for constant, value in constants.items())])
        late = Timer(_PATIENCE, self._process.kill)
        late.start()
        try:
            sent.write(header.encode() + b"\n" + text)
            sent.flush()
            size = int(received.readline())
            atoms = received.read(size)
        finally:
            late.cancel()
        if len(atoms) < size:
            raise OSError("the process has ended")
        return atoms


def answer_set(program: str, constants: Mapping[str, int], *, name: str, limits: Limits = LIMITS) -> bytes:
    """The shown atoms of the only answer set of a program of entailment, separated by spaces."""
    atoms = _run(program, constants, ["--models=1"], name, limits, _REASON_LESS)
    if atoms is None:
        raise KnowledgeError("the program has no answer set", source=name)
    return atoms


def consequences(
    program: str,
    constants: Mapping[str, int],
    *,
    brave: bool,
    name: str,
    limits: Limits = LIMITS,
    optimal: bool = False,
) -> str | None:
    """The shown atoms that are true in all answer sets (``brave``: in some); ``None`` if there is no answer set.

    ``optimal``: only the answer sets that the program prefers count.
    """
    mode = "brave" if brave else "cautious"
    options = ["--models=0", f"--enum-mode={mode}", *([f"--opt-mode={OPTIMAL}"] if optimal else [])]
    atoms = _run(program, constants, options, name, limits)
    if atoms is None:
        return None
    # clingo prints each better estimate, followed by its quality; the last one is the answer.
    return [line for line in atoms.decode().split("\n") if not line.startswith(("Consequences:", "Optimization:"))][-1]


_BOUND = "bound what its rules derive (a rule such as q(X+1) :- q(X) never ends)"
_REASON_LESS = "choose an entailment with fewer rules, such as rdfs or rdf, give it fewer triples"


def too_costly(amount: str, limit: str, name: str, advice: str = _BOUND) -> KnowledgeError:
    """The error for a program that exceeds a limit."""
    return KnowledgeError(
        f"the program was not grounded and solved within {amount}",
        source=name,
        hint=f"{advice}, or raise Limits({limit}=…)",
    )


def _run(
    program: str,
    constants: Mapping[str, int],
    options: list[str],
    name: str,
    limits: Limits = LIMITS,
    advice: str = _BOUND,
) -> bytes | None:
    command = [sys.executable, "-c", _LIMITED, str(limits.grounding_bytes)]
    command += [*options, "--verbose=0", "--outf=0", "--warn=none", "-"]
    command += [f"--const={constant}={value}" for constant, value in constants.items()]
    try:
        done = subprocess.run(
            command, input=program.encode(), capture_output=True, check=False, timeout=limits.grounding_seconds
        )
    except subprocess.TimeoutExpired:
        raise too_costly(f"{limits.grounding_seconds} s", "grounding_seconds", name, advice) from None
    except OSError as error:
        raise KnowledgeError(
            f"clingo could not be started as {sys.executable!r} -m clingo: {error}",
            source=name,
            hint="run from an interpreter that can start processes and has clingo installed",
        ) from error
    atoms, _, verdict = done.stdout.rstrip().rpartition(b"\n")
    if verdict in (
        b"SATISFIABLE",
        b"OPTIMUM FOUND",
    ):  # the exit code says less: it depends on how clingo was started
        return atoms
    if verdict == b"UNSATISFIABLE":
        return None
    if b"bad_alloc" in done.stderr or b"MemoryError" in done.stderr:
        raise too_costly(f"{limits.grounding_bytes} bytes", "grounding_bytes", name, advice)
    if verdict == b"UNKNOWN" and not done.stderr.strip():
        raise KnowledgeError(
            "the program was not solved: clingo was stopped before it knew whether there is an answer set",
            source=name,
            hint="write it with fewer choices",
        )
    message = (done.stderr or done.stdout[-1000:]).decode(errors="replace").strip()
    message = message.partition("Traceback (most recent call last)")[0].strip() or message.splitlines()[-1]
    raise KnowledgeError(f"clingo gave no answer (exit code {done.returncode}): {message}", source=name)
