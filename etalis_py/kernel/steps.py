"""An engine takes one step at a time, and is broken once a step has been interrupted.

A step is whatever changes an engine or reads all of it: input, time, a change of programs or background, a snapshot.
Ctrl-C and a lack of memory may end a step between any two instructions, a limit or an error of a user's function in the
middle of an instant.  What the engine then remembers is neither what it was before the step nor what it would be after
it.  So it takes no further step, and each attempt says so, until ``restore`` has replaced what it remembers:

    push_all ──▶ LimitExceeded        the step was interrupted
    push     ──▶ BrokenEngine         nothing is taken, nothing is answered
    restore  ──▶ as it was at the snapshot

A step that refuses what it is given before it has changed anything raises ``Refused``, and the engine goes on.

Two threads in one engine would interleave their changes, so a step that begins while another is under way is refused,
too.  Python runs a signal handler or another thread only at calls and at the ends of loops, so nothing comes between a
test of ``_idle`` and the assignment that follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from etalis_py.values.errors import BrokenEngine, EngineInUse

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Engine = TypeVar("_Engine", bound="Steps")


class Refused(Exception):
    """Raised inside a step that has changed nothing, or has done everything else; the caller gets ``error``."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Steps:
    """Knows whether an engine can take a step, and what interrupted it if it cannot."""

    def __init__(self) -> None:
        self._idle = True
        self._interrupted = ""  # what interrupted a step
        self._replanning = False  # whether its programs or its background are being changed
        self._listeners: list[Callable[..., Any]] = []  # what is called with each match

    @property
    def broken(self) -> BrokenEngine | None:
        """The error that the next step will raise because an earlier one was interrupted."""
        if not self._interrupted:
            return None
        way = _ANEW if self._replanning else _BACK
        return BrokenEngine(f"this engine is broken, because {self._interrupted}: {way}")

    def _interrupt(self, step: str, error: BaseException) -> None:
        """Remember which step was interrupted, and by what."""
        said = f": {error}" if str(error) else ""
        self._interrupted = f"{step} was interrupted by {type(error).__name__}{said}"

    def _unusable(self) -> RuntimeError:
        """The error that says why no step can begin now."""
        return self.broken or EngineInUse(
            "another step of this engine is under way: in another thread, or it has called the function that asks for "
            "this one.  An engine takes one step at a time; let one thread do all of them, or hold a lock around each"
        )

    def _settle(self) -> None:
        """Prepare for the next step; called at the end of each."""

    def _tell(self, result: Any) -> None:
        """Call the listeners with what a step has given, once the engine can take the next one."""


_BACK = "restore its last snapshot (restore) and give it the input since then again, or begin again with a new engine"
_ANEW = (
    "make a new engine with the same programs and with a background that is loaded again, restore the last snapshot "
    "into it, and give it the input since then again"
)


def step(method: Callable[Concatenate[_Engine, _Given], _Result]) -> Callable[Concatenate[_Engine, _Given], _Result]:
    """Make a method a step: one at a time, and none after one that was interrupted."""
    return _guarded(method, repairs=False)


def repair(method: Callable[Concatenate[_Engine, _Given], _Result]) -> Callable[Concatenate[_Engine, _Given], _Result]:
    """Make a method a step that a broken engine takes, too, because it replaces all that the engine remembers."""
    return _guarded(method, repairs=True)


def _guarded(
    method: Callable[Concatenate[_Engine, _Given], _Result], *, repairs: bool
) -> Callable[Concatenate[_Engine, _Given], _Result]:
    name = method.__name__.lstrip("_")

    @wraps(method)
    def guarded(engine: _Engine, /, *given: _Given.args, **named: _Given.kwargs) -> _Result:
        if not engine._idle and not (repairs and engine._interrupted and not engine._replanning):
            raise engine._unusable()
        engine._idle = False
        result: _Result | None = None
        refusal: Exception | None = None
        try:
            try:
                result = method(engine, *given, **named)
            except Refused as refused:
                refusal = refused.error
            engine._settle()
        except BaseException as error:
            engine._interrupt(name, error)
            raise
        if refusal is not None:
            engine._idle = not engine._interrupted
            raise refusal
        engine._interrupted, engine._idle = "", True
        if engine._listeners:
            engine._tell(result)
        return result  # type: ignore[return-value]

    return guarded


@contextmanager
def refusals() -> Iterator[None]:
    """Errors inside the block refuse the step: it has changed nothing yet."""
    try:
        yield
    except Exception as error:
        raise Refused(error) from None


__all__ = ["Refused", "Steps", "refusals", "repair", "step"]
