"""Decides whether a job may continue from a checkpoint.

Every shard keeps with its state a description of the job as plain data: the programs, their stages and their shards.
When a run begins again, this description is compared with the one of the new run:

* The number of shards, the number of partitions, the stages and the routing decide where a solution is kept.  A
  change of any of them is refused.
* A query continues if its rules are the same; its spelling may change.  A query that was removed is forgotten, with the
  goals that no other query shares; a new one starts with the events from now on.  A query with the same name and other
  rules is refused, because it could be meant either as a change or as a new query.
* The background may change as long as the rules stay the same; it holds from the next instant on, as with
  ``Engine.update``.  If another vocabulary or schema changes the rules, the queries count as different ones.
* Answer-set programs that read events must be the same, because the state has their atoms.
* Windowed queries (RSP-QL) must be the same, with the same background.
* Rows must be read in the same way, because the state has what the former reading made of them.
* The horizon of corrections (``revise``) must be the same, because the input within it is taken in again: a shorter one
  would drop corrections whose matches have been reported, and a longer one lacks the input before the former one.
  For the same reason the queries and the background must then be the same: a new query would see that input, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

import msgspec
from etalis_rules import program as ir
from etalis_rules.durations import seconds

from etalis_py.spark.errors import SparkError
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.plan.spec import ProgramSpec, fingerprint
from etalis_py.spark.shard.ship_background import arrived

ADVICE = "go on with what the checkpoint was made by, or start from a new checkpoint folder and replay the stream"


class ProgramIdentity(msgspec.Struct, frozen=True):
    """A program: its name, its policy, and digests of its background and of its static answer-set programs.

    ``updates``: the background changes while it runs.
    """

    name: str
    policy: str
    background: str
    live: str = ""
    updates: bool = False


class StageIdentity(msgspec.Struct, frozen=True):
    """A part of the job: ``queries`` with digests of their rules, ``routes`` from leaves to positions.

    ``reports`` and ``feeds`` are as in ``ShardPart``.  ``apart``: shards must drop matches whose key belongs to another
    shard.
    """

    number: int
    program: str
    level: int
    shards: int
    apart: bool
    windowed: bool
    queries: dict[str, str]
    reports: tuple[str, ...]
    feeds: tuple[str, ...]
    routes: dict[str, str]


class JobIdentity(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole job, with the version of the package that made it.

    ``reading``: how rows become events, as far as that is known; older checkpoints do not say it.
    ``revise``: the horizon of corrections in microseconds; 0 if there is none, and in older checkpoints.
    """

    package: str
    shards: int
    partitions: int
    programs: tuple[ProgramIdentity, ...]
    stages: tuple[StageIdentity, ...]
    reading: dict[str, str] = {}
    revise: int = 0

    def encoded(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @property
    def digest(self) -> str:
        return digest_of(self.encoded())


def digest_of(data: bytes) -> str:
    return hashlib.blake2s(data, digest_size=16).hexdigest()


def identity_of(
    specs: Sequence[ProgramSpec],
    parts: Iterable[RoutedPart],
    shards: int,
    partitions: int,
    reading: dict[str, str],
    revise: int = 0,
) -> JobIdentity:
    """The identity of a job."""
    programs = tuple(
        ProgramIdentity(
            s.name, s.policy, digest_of(arrived(s.background)), _live(s) if s.live or s.static else "", s.updates
        )
        for s in specs
    )
    stages = tuple(_stage_of(specs[routed.part.program], routed) for routed in parts)
    return JobIdentity(_package(), shards, partitions, programs, stages, reading, revise)


def _stage_of(spec: ProgramSpec, routed: RoutedPart) -> StageIdentity:
    part = routed.part
    windowed = spec.windowed
    if windowed:
        whole = fingerprint(spec, part.queries)
        queries = dict.fromkeys(part.queries, digest_of(f"{whole} {digest_of(arrived(spec.background))}".encode()))
    else:
        queries = dict(routed.meanings)
    return StageIdentity(
        number=part.number,
        program=spec.name,
        level=part.level,
        shards=part.shards,
        apart=bool(part.keys),
        windowed=windowed,
        queries=queries,
        reports=part.reports,
        feeds=part.feeds,
        routes={} if windowed else {ir.identify(leaf): position for leaf, position in routed.routes},
    )


def _live(spec: ProgramSpec) -> str:
    return digest_of(msgspec.msgpack.encode(spec.live + spec.static))


def _package() -> str:
    try:
        return version("etalis-py")
    except PackageNotFoundError:
        return "unknown"


def decoded(data: bytes) -> JobIdentity:
    """The identity from its bytes; raises ``msgspec.MsgspecError`` for any other bytes."""
    return msgspec.msgpack.decode(data, type=JobIdentity)


def check_same_job(before: JobIdentity, now: JobIdentity, checkpoint: str = "the checkpoint") -> None:
    """Refuse the state of another job, unless this one can continue with it."""
    if differing := differences(before, now):
        raise SparkError(f"{checkpoint} does not belong to this program: {'; '.join(differing)}; {ADVICE}")


def differences(before: JobIdentity, now: JobIdentity) -> list[str]:
    """The reasons why a job cannot continue with the state of another one, as text; empty: it can."""
    divided = any(stage.shards > 1 for stage in (*before.stages, *now.stages))
    if before.shards != now.shards and divided:
        return [
            f"it was made with {before.shards} shards, now there are {now.shards}: give shards={before.shards} (and "
            f"set spark.sql.shuffle.partitions to {before.partitions})"
        ]
    if before.partitions != now.partitions and divided:
        return [
            f"it was made with {before.partitions} partitions, now there are {now.partitions}: set "
            f"spark.sql.shuffle.partitions to {before.partitions}"
        ]
    differing = [
        *_other_queries(before, now),
        *_other_stages(before, now),
        *_other_answer_sets(before, now),
        *_other_updates(before, now),
        *other_reading(before.reading, now.reading),
        *other_horizon(before.revise or None, now.revise),
        *_other_replays(before, now),
    ]
    if differing and before.package != now.package:
        differing.append(f"it was made by etalis-py {before.package}, this is {now.package}")
    return differing


def _other_queries(before: JobIdentity, now: JobIdentity) -> Iterator[str]:
    """Queries that have the same name but other rules."""
    was, programs = _queries(before), {p.name: p for p in before.programs}
    are = {p.name: p for p in now.programs}
    for (program, query), meaning in _queries(now).items():
        if was.get((program, query), meaning) == meaning:
            continue
        name, old, new = _named(program, query), programs[program], are[program]
        if old.policy != new.policy:
            yield f"{name} was run with the policy {old.policy}, now with {new.policy}, which consumes other goals"
        elif old.background != new.background:
            yield (
                f"{name} has become another query, by its own text or because the background has another vocabulary or "
                "schema: go on with those of before"
            )
        else:
            yield f"{name} has become another query: give it another name (REGISTER QUERY) if it is to begin anew"


def _other_answer_sets(before: JobIdentity, now: JobIdentity) -> Iterator[str]:
    """The changes of answer-set programs that read events; they are refused, as the state has the programs' atoms."""
    was = {p.name: p.live for p in before.programs}
    if any(was.get(program.name, program.live) != program.live for program in now.programs):
        yield "the answer-set programs that the job solves are no longer those that the checkpoint was made with"


def _other_updates(before: JobIdentity, now: JobIdentity) -> Iterator[str]:
    """The changes of an initial background that is updated; the state only has the difference from it."""
    are = {p.name: p for p in now.programs}
    changed = [(old, are[old.name]) for old in before.programs if old.updates and old.name in are]
    if any(not new.updates for _, new in changed):
        yield "updates had changed its background: give updates again, though there be none"
    elif any(old.background != new.background for old, new in changed):
        yield "updates had changed its background, which is now another one: give the one of before, and change that"


def other_reading(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """The reasons why rows would become other events; none if it is not known of both how they are read."""
    for name in sorted(before.keys() | now.keys()) if before and now else ():
        old, new = before.get(name), now.get(name)
        if old != new:
            was, is_now = (_part_of_reading(name, text) for text in (old, new))
            yield f"its rows were read {was}, and are read {is_now if was != is_now else 'with another one'} now"


def other_horizon(before: int | None, now: int) -> Iterator[str]:
    """The reason why corrections would reach back farther, or less far; none if it is not known how far they did."""
    if before not in (None, now):
        was, is_now = ("without revise" if not us else f"with revise={seconds(us)} s" for us in (before or 0, now))
        yield f"it was made {was}, and is run {is_now} now"


def _other_replays(before: JobIdentity, now: JobIdentity) -> Iterator[str]:
    """The changes by which the input within the horizon of corrections, taken in again, would have other matches."""
    if not now.revise:
        return
    was, are = _queries(before), _queries(now)
    changes = [f"{_named(*query)} is new" for query in are if query not in was]
    changes += [f"{_named(*query)} is gone" for query in was if query not in are]
    backgrounds = {p.name: p.background for p in before.programs}
    if any(backgrounds.get(p.name, p.background) != p.background for p in now.programs):
        changes.append("the background is another one")
    if changes:
        yield (
            f"{', '.join(changes)}, and with revise={seconds(now.revise)} s the input within the horizon is taken in "
            "again, which must have the matches that it had"
        )


def _part_of_reading(name: str, text: str | None) -> str:
    if name == "mapping":
        return "with a mapping" if text else "without a mapping"
    return f"with {name}={text!r}" if text else f"without {name}"


def _queries(job: JobIdentity) -> dict[tuple[str, str], str]:
    return {(s.program, query): meaning for s in job.stages for query, meaning in s.queries.items()}


def _named(program: str, query: str) -> str:
    return f"{query} of program {program}" if program else query


def _other_stages(before: JobIdentity, now: JobIdentity) -> Iterator[str]:
    """Stages that were added, removed or are routed differently."""
    was = {s.number: s for s in before.stages}
    are = {s.number: s for s in now.stages}
    for number in sorted(was.keys() | are.keys()):
        old, new = was.get(number), are.get(number)
        if old is None and new is not None:
            yield f"{_these(new)} would need a stage of its own, and the checkpoint has none: run it as a second job"
        elif new is None and old is not None:
            yield f"{_these(old)} had a stage of its own, which is gone: leave the query in the program"
        elif old is not None and new is not None:
            yield from _changed(old, new)
    yield from _moved(before, now)


def _changed(old: StageIdentity, new: StageIdentity) -> Iterator[str]:
    same = old.queries.keys() & new.queries.keys()
    if old.program != new.program or not same:
        yield f"{_these(new)} would run in the stage of {_these(old)}: keep the order of programs and queries"
    elif old.shards != new.shards:
        yield f"{_these(new)} would run in {_shards(new)}, and ran in {_shards(old)}"
    elif old.level != new.level:
        yield f"{_these(new)} would run in an operator of level {new.level}, and ran in one of level {old.level}"
    elif old.apart and not new.apart:
        yield f"{_these(new)} would no longer tell the matches of its shards apart by the key"
    elif any(old.routes.get(leaf, position) != position for leaf, position in new.routes.items()):
        yield f"{_these(new)} would be sharded by another key"
    elif old.windowed and old.queries.keys() != new.queries.keys():
        yield f"{_these(new)} would share windows that {_these(old)} shared: leave these queries together"


def _moved(before: JobIdentity, now: JobIdentity) -> Iterator[str]:
    """Queries that would report, or derive for others, in another stage than before; their state is in the old one."""
    for role in ("reports", "feeds"):
        was, are = _places(before, role), _places(now, role)
        for (program, query), number in are.items():
            if was.get((program, query), number) != number:
                yield f"{_named(program, query)} would be computed in another stage than before"


def _places(job: JobIdentity, role: str) -> dict[tuple[str, str], int]:
    return {(stage.program, query): stage.number for stage in job.stages for query in getattr(stage, role)}


def _these(stage: StageIdentity) -> str:
    return ", ".join(_named(stage.program, query) for query in stage.queries)


def _shards(stage: StageIdentity) -> str:
    return "one shard" if stage.shards == 1 else f"{stage.shards} shards"
