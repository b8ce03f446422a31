"""What a run that was asked to stop still waits for: said on standard error while it lasts."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Callable

from etalis_rules.messages import how_many

_AT_WORK = "a step, or what the source was asked for, is not over yet"
_FIRST, _MOST = 3.0, 60.0  # seconds before it is said for the first time, and at most between two times


class Farewell:
    """``waited_for`` says what is waited for, and what a second signal does about it.

    ``begin`` is called by the handler of a signal, and ``end`` when the run is over.
    """

    def __init__(self, waited_for: Callable[[], str], *, first: float = _FIRST) -> None:
        self._waited_for, self._first = waited_for, first
        self._begun = False
        self._over = threading.Event()

    def begin(self) -> None:
        """Say from now on what is waited for.

        ``threading`` starts a thread under a lock, which whoever was interrupted by the signal may hold.
        """
        if not self._begun:
            self._begun = True
            _thread.start_new_thread(self._say, ())

    def _say(self) -> None:
        began, pause = time.monotonic(), self._first
        while not self._over.wait(pause):
            said = f"etalis: stopping for {time.monotonic() - began:.0f} s: {self._waited_for()}\n"
            sys.stderr.write(said)  # at once, so that it does not mix with what the run says
            sys.stderr.flush()
            pause = min(2 * pause, _MOST)

    def end(self) -> None:
        self._over.set()


def waited_for(sink: object, name: str, *, writing: bool, lasts: bool) -> str:
    """What a run waits for before it stops.  ``writing``: matches are on their way to the sink of this name.

    ``lasts``: the run goes on later.

    >>> waited_for(None, "", writing=False, lasts=False)
    'a step, or what the source was asked for, is not over yet; a second signal ends the run'
    """
    left = getattr(sink, "left", 0)
    if not left:
        waiting = f"{name} has yet to take matches" if writing else _AT_WORK
        again = ", and the next one goes on from the last checkpoint" if lasts else ""
        return f"{waiting}; a second signal ends the run{again}"
    problem, longest = (getattr(sink, key, "") for key in ("problem", "longest"))
    waiting = f"{name} has yet to take {how_many(left, 'match', 'matches')}" + (f" ({problem})" if problem else "")
    limit = f"one that it does not take is tried for at most {longest:.0f} s"
    then = "and the next one sends what is left" if lasts else "without what is left"
    return f"{waiting}; {limit}; a second signal ends the run, {then}"
