"""The limits of one server; each can be set, and is enforced with a problem document that names it."""

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
    standing_queries: int = 100_000
    queries_per_client: int = 10_000
    standing_characters: int = 4_000
    standing_rules: int = 500
    query_characters: int = 100_000
    query_rules: int = 10_000
    compile_seconds: float = 10.0
    step_seconds: float = 10.0
    program_bytes: int = 536_870_912
    programs_bytes: int = 2_147_483_648
    match_bytes: int = 1_048_576
    matches_per_second: int = 1_000
    matches_per_graph: int = 1_000
    push_clients: int = 2_048
    connections: int = 4_096
    connections_per_address: int = 1_024
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    questions_at_once: int = 2
    questions_per_minute: int = 60
    question_seconds: float = 10.0
    question_bytes: int = 268_435_456
    document_depth: int = 128
    document_seconds: float = 2.0
    document_bytes: int = 268_435_456
    graph_bytes: int = 4_194_304
    slow_reader_seconds: float = 20.0
    page_members: int = 10_000
    listing_members: int = 100_000
    waiting_writes: int = 10_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value <= 0:
                raise ValueError(f"the limit {name} must be above 0, found {value}")
