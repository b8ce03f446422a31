"""Keywords of a call that are not known: an error that names the one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from etalis_rules.messages import closest


def check_keywords(call: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for the first keyword that ``call`` does not have.

    >>> check_keywords("run", ["tiem"], ["time", "until"])
    Traceback (most recent call last):
    TypeError: run has no option 'tiem'; did you mean 'time'?
    >>> check_keywords("run", ["fast"], ["time", "until"])
    Traceback (most recent call last):
    TypeError: run has no option 'fast'; there are time, until
    """
    options = sorted(known)
    for name in given:
        if name not in options:
            near = closest(name, options)
            advice = f"did you mean {near!r}?" if near else f"there are {', '.join(options)}"
            raise TypeError(f"{call} has no option {name!r}; {advice}")


__all__ = ["check_keywords"]
