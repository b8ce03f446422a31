"""The state of a server for Prometheus, in its text format."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Iterator
from typing import Any

TYPE = "text/plain; version=0.0.4"

# Name, kind, help, and the key in the state of a container or program.
_CONTAINERS = (
    ("etalis_container_graphs", "gauge", "Graphs that the container holds.", "members"),
    ("etalis_container_triples", "gauge", "Triples that the container holds.", "triples"),
    ("etalis_container_graphs_per_second", "gauge", "Graphs that arrived per second, over ten seconds.", "rate"),
)
_PROGRAMS = (
    ("etalis_program_running", "gauge", "1 while the program runs.", "running"),
    ("etalis_program_graphs_total", "counter", "Graphs read since the program started.", "pushed"),
    ("etalis_program_matches_total", "counter", "Matches since the program started.", "matches"),
    ("etalis_program_written_total", "counter", "Matches written into the output container.", "written"),
    ("etalis_program_refused_total", "counter", "Matches that could not be written.", "refused"),
    ("etalis_program_behind_graphs", "gauge", "Graphs that wait to be read; counted up to 10,001.", "behind"),
    ("etalis_program_goals", "gauge", "Open goals.", "goals"),
    ("etalis_program_memory_bytes", "gauge", "Memory of the program's process beyond what is shared.", "memory"),
)


def metrics(status: dict[str, Any]) -> str:
    """The state of a server, as ``status`` gives it, as text for Prometheus."""
    lines = [
        *family("etalis_push_readers", "gauge", "Readers of push.", [("", status["readers"])]),
        *family("etalis_server_memory_bytes", "gauge", "The most memory the server had.", [("", _memory())]),
    ]
    for name, kind, about, key in _CONTAINERS:
        rows = [(_labels(container=c["path"]), c[key]) for c in status["containers"]]
        lines += family(name, kind, about, rows)
    for name, kind, about, key in _PROGRAMS:
        rows = [(_labels(program=p["program"], input=p["input"]), p[key]) for p in status["programs"]]
        lines += family(name, kind, about, rows)
    return "".join(f"{line}\n" for line in lines)


def family(name: str, kind: str, about: str, rows: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in rows:
        yield f"{name}{labels} {value + 0:.15g}" if isinstance(value, float) else f"{name}{labels} {int(value)}"


def _labels(**labels: str) -> str:
    spelled = (
        '{}="{}"'.format(name, value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"'))
        for name, value in labels.items()
    )
    return "{" + ",".join(spelled) + "}"


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
