"""What one server allows; every number can be set, and each is enforced with a problem document that names it."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server.  Sizes are bytes, times are seconds."""

    body_bytes: int = 1_048_576
    triples_per_graph: int = 10_000
    windows_per_container: int = 64
    physical_triples: int = 1_000_000
    containers: int = 10_000
    nesting_depth: int = 16
    programs: int = 32
    query_characters: int = 100_000
    push_clients: int = 2_048
    connections: int = 4_096
    body_seconds: float = 30.0
    slow_reader_seconds: float = 20.0
    page_members: int = 10_000
    listing_members: int = 100_000
    waiting_writes: int = 10_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value <= 0:
                raise ValueError(f"the limit {name} must be above 0, found {value}")
