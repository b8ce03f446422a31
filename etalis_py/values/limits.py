"""The limits at which an engine gives up with an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from etalis_py.values.errors import LimitExceeded
from etalis_py.values.memory import default_bytes


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits at which an engine gives up with an error.

    Numbers: ``goals``: open goals and other remembered solutions, or items in windows.  ``derivations``: new solutions
    of one node in one instant.  ``rounds``: rounds of a recursion within an instant.  ``matches``: rows reported in one
    instant.  ``horizon``: events that are kept for corrections.

    Work: ``steps`` of one evaluation over background knowledge, a window or the past: triples looked at and rows
    combined.  ``bytes``: the size of all goals, and of the new solutions of one node in one instant, estimated from a
    sample; half of the machine's or container's memory by default.  ``grounding_bytes`` and ``grounding_seconds``: of
    the grounding of one answer-set program.

    Documents of the background: ``unpacked_bytes`` of a compressed file (of a stream, one that must be held whole may
    have the default); ``expanded_bytes``: what entities and prefixes may add to a document, if that is more than ten
    times its size; ``term_characters`` of one term.
    """

    goals: int = 50_000_000
    derivations: int = 10_000_000
    rounds: int = 100_000
    matches: int = 10_000_000
    horizon: int = 10_000_000
    steps: int = 100_000_000
    bytes: int = field(default_factory=default_bytes)
    grounding_bytes: int = 8_589_934_592
    grounding_seconds: float = 600.0
    unpacked_bytes: int = 1_073_741_824
    expanded_bytes: int = 134_217_728
    term_characters: int = 16_000_000


LIMITS = Limits()
_AT_ONCE = 1 << 20


def take_unpacked(read: Callable[[int], bytes], limits: Limits) -> bytes:
    """All that ``read`` gives of compressed data: a few kilobytes of these may unpack to all the memory there is."""
    parts: list[bytes] = []
    left = limits.unpacked_bytes
    while part := read(min(left + 1, _AT_ONCE)):
        left -= len(part)
        if left < 0:
            raise LimitExceeded(f"unpacks to more than {limits.unpacked_bytes:,} bytes")
        parts.append(part)
    return b"".join(parts)
