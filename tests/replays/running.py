"""Run a replay in the embedded engine."""

from __future__ import annotations

from etalis_py import Engine, Match, compile
from etalis_py.replays import Replay


def run(replay: Replay, keep: tuple[str, ...] | None = None) -> list[Match]:
    """The matches of the queries that the replay reads, or of those to keep."""
    wanted = replay.reads if keep is None else keep
    engine = Engine(compile(replay.programs), background=list(replay.background), render=replay.clock.render)
    found = [match for match in engine.push_all(replay.events) if match.query in wanted]
    return found + [match for match in engine.close() if match.query in wanted]
