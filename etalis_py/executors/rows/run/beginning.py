"""The timer of START, which is due once: one microsecond before the stream starts."""

from __future__ import annotations

from etalis_py.kernel.position import FOREVER


class Beginning:
    """The instant of START, if it is known and still to come.

    The kernel tells it, and tells it again after a snapshot if it has not passed, so it is no part of stored state.
    """

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = FOREVER

    def next(self) -> int | None:
        """When it is due."""
        return None if self.at == FOREVER else self.at

    def last(self) -> int | None:
        """When it is due at the latest."""
        return self.next()

    def begins(self, t: int) -> bool:
        """Whether this is the instant, which then is over."""
        if self.at != t:
            return False
        self.at = FOREVER
        return True

    def begins_by(self, t: int) -> int | None:
        """The instant if this time has reached it; then it is over."""
        at = self.at
        return at if at <= t and self.begins(at) else None
