"""Snapshots and journals of an engine: its state as bytes, whatever stages it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from etalis_py.executors.rows.generate.provenance import Provenance, plain, provenance
from etalis_py.kernel.kernel import Kernel
from etalis_py.kernel.matches import Match, Matches, Retracted, Revised
from etalis_py.kernel.old_formats import damage_as_error, old_journal, old_snapshot, stages_of
from etalis_py.kernel.position import Position
from etalis_py.kernel.protocol import Executor, Goals
from etalis_py.kernel.shapes import LazyShapes, Shape
from etalis_py.kernel.steps import Refused, refusals, repair, step
from etalis_py.kernel.stored import HORIZON, JOURNAL, SNAPSHOT, SnapshotError, read, written


class Snapshots(Kernel, ABC):
    """An engine's state, stored and restored; the engine itself plans the stages."""

    knowledge: Any
    updates: list[tuple[int, str, list[Any], list[Any]]]
    _rule_stages: list[Any]
    _journals: bool

    @abstractmethod
    def learn(self, graph: str, add: list[Any], remove: list[Any]) -> Any:
        """Apply an update to the knowledge, the programs and the rules."""

    @abstractmethod
    def renew(self, *, rules: bool) -> None:
        """Adapt to another version of the background; ``rules``: it gives other rules."""

    @abstractmethod
    def _plan_anew(self) -> None:
        """Make new executors for the same programs, before their stream."""

    # --- state ---

    def goals(self) -> Iterator[Goals]:
        """The goals that wait now, of all nodes of the rules."""
        from etalis_py.kernel.goals import plain_columns  # loads Arrow

        for executor in self._executors:
            if executor.kind == "rules":
                for node, side, columns, why in executor.dump()["goals"]:
                    rows = columns if isinstance(columns, list | tuple) else plain_columns(columns)
                    yield Goals(node, side, tuple(rows), why)

    @step
    def snapshot(self) -> bytes:
        """Everything the engine remembers, as bytes: a header with version and checksum, and MessagePack.

        This includes matches that no call has returned yet: those of instants that ``update`` closed.
        """
        if self._revision is None:
            return self.save()
        return written(HORIZON, self._revision.plain() | _unread(self._revision.unread()))

    def save(self) -> bytes:
        """The same as ``snapshot``, without the revision horizon."""
        data = {
            **self._standing(),
            "knowledge": [None if known is None else known.snapshot() for known in self._known()],
            "stages": [
                {"kind": kind, "state": e.dump()} for (kind, _), e in zip(self._kinds(), self._executors, strict=True)
            ],
        }
        return written(SNAPSHOT, data)

    @repair
    def restore(self, data: bytes, *, fitted: bool = False) -> None:
        """Continue from a snapshot that an engine with the same programs made.

        ``fitted``: the programs may have changed since.  Goals of rules that are gone are left out, new rules start
        without goals, and the background is the engine's own.
        """
        with refusals():
            if not isinstance(data, (bytes, bytearray)):
                raise TypeError(f"restore takes the bytes that snapshot() gave, not {data!r} ({type(data).__name__})")
        if self._revision is None:
            with refusals():
                state, damages = self._readable(data, fitted)
            self._repair()
            with damages:
                self._restore(state, fitted)
        else:
            with refusals():
                horizon = read(HORIZON, data)
                self._readable(horizon["state"], fitted)
            self._repair()
            self._revision.go_on(horizon, fitted=fitted)
            self._revision.unreported = self._unread_of(horizon)

    def _repair(self) -> None:
        """If a step was interrupted, what it left in the executors goes with them."""
        if self._interrupted:
            self._plan_anew()

    def go_back(self, data: bytes, *, fitted: bool = False) -> None:
        """The same as ``restore``, without the revision horizon."""
        state, damages = self._readable(data, fitted)
        with damages:
            self._restore(state, fitted)

    def _readable(self, data: bytes, fitted: bool) -> tuple[dict[str, Any], AbstractContextManager[None]]:
        """The state in a snapshot that an engine with these stages made, and what turns damages into errors."""
        old = old_snapshot(data)
        if old is not None:
            with damage_as_error():
                old["stages"] = stages_of(old, self._kinds())
        state = read(SNAPSHOT, data) if old is None else old
        self._check_ties(state)
        self._matched(state["stages"])
        if not fitted and any(
            known is None and version is not None
            for known, version in zip(self._known(), state["knowledge"], strict=False)
        ):
            raise _no_background()
        return state, nullcontext() if old is None else damage_as_error()

    def _restore(self, state: dict[str, Any], fitted: bool) -> None:
        self._forget_reports()
        if not fitted:
            self._go_to_version(state)
        for executor, part in self._matched(state["stages"]):
            there = part["state"]
            executor.load(executor.fitted(there) if fitted else there)
        self._renew_functions()
        self._stand(state, fitted)

    @step
    def take_journal(self) -> bytes:
        """What happened since the last call, as bytes; needs ``Engine(…, journal=True)``.

        A snapshot and the journals taken after it, in order, are the whole state.
        """
        if not self._journals:
            raise Refused(ValueError("this engine keeps no journal: make it with Engine(…, journal=True)"))
        if self._revision is not None:
            return written(JOURNAL, {"inputs": self._revision.journal()} | _unread(self._revision.unread()))
        kinds = zip(self._kinds(), self._executors, strict=True)
        stages = [{"kind": kind, "entries": executor.journal()} for (kind, _), executor in kinds]
        raw = written(JOURNAL, {**self._standing(), "updates": self.updates, "stages": stages})
        self.updates.clear()
        return raw

    @step
    def apply_journal(self, data: bytes, *, fitted: bool = False) -> None:
        """Replay the journal of another engine with the same programs and state; ``fitted`` as in ``restore``."""
        with refusals(), damage_as_error():
            old = old_journal(data)
            state = read(JOURNAL, data) if old is None else old
            if (self._revision is None) != ("inputs" not in state):
                raise SnapshotError("the journal is of an engine with another horizon: give both the same revise")
            if self._revision is None:
                self._check_follows(state, fitted)
        if old is None:
            if self._revision is not None:
                self._revision.replay(state["inputs"])
                self._revision.unreported = self._unread_of(state)
            else:
                self._replay(state, fitted)
            return
        with damage_as_error():
            self._replay(old, fitted)

    def _check_follows(self, state: dict[str, Any], fitted: bool) -> None:
        """Refuse the journal of other stages, or one that does not follow on the version of the background here."""
        self._check_ties(state)
        self._matched(state["stages"])
        if fitted or not state["updates"]:
            return
        if self.knowledge is None:
            raise _no_background()
        first = state["updates"][0][0]
        if first > self.knowledge.version + 1:
            raise SnapshotError(
                f"the journal goes on from version {first - 1} of the background, this engine has version "
                f"{self.knowledge.version}: apply the journals in order, after the snapshot they follow"
            )

    def _replay(self, state: dict[str, Any], fitted: bool) -> None:
        stages = self._matched(state["stages"])
        if not fitted:
            self._learn_again(state)
        for executor, part in stages:
            entries = part["entries"]
            executor.replay(executor.fitted_journal(entries) if fitted else entries)
        self._renew_functions()
        self._stand(state, fitted)

    @property
    def _executors(self) -> list[Executor]:
        return [stage.executor for stage in self._stages]

    def _kinds(self) -> list[tuple[str, frozenset[str]]]:
        """The kind of each stage, and its queries."""
        return [(executor.kind, queries_of(executor.shapes)) for executor in self._executors]

    def _check_ties(self, state: Mapping[str, Any]) -> None:
        """Refuse the state of an engine that orders events in another way: its goals are at other times."""
        if (there := state.get(_TIES)) != self.options.ties:
            raise SnapshotError(
                f"the state was stored with ties={there!r}, and this engine has ties={self.options.ties!r}: give both "
                "the same"
            )

    def _matched(self, stages: Sequence[Any]) -> list[tuple[Executor, Any]]:
        """The executors with the stored parts of their stages."""
        here, there = [kind for kind, _ in self._kinds()], [part["kind"] for part in stages]
        if here != there:
            raise SnapshotError(
                f"the stored state has the stages {', '.join(there)}, this engine {', '.join(here)}: restore it into "
                "an engine with the same programs"
            )
        return list(zip(self._executors, stages, strict=True))

    def _standing(self) -> dict[str, Any]:
        """The place in the stream, what the rules are made for, and the matches that no call has returned yet."""
        self._set_aside()
        gone = [name for plan, _ in self._rule_stages[:1] for name in plan.gone()]
        standing = {"position": self._at.plain(), "counters": self.counters.plain()} | _unread(self._unread)
        ties = {} if self.options.ties is None else {_TIES: self.options.ties}
        return standing | ties | ({_GONE: gone} if gone else {})

    def _stand(self, state: dict[str, Any], fitted: bool) -> None:
        """Go to the place in the stream where the state was stored."""
        self._at = Position.of(state["position"])
        self._tell_start()
        if fitted:
            self._at.answered &= queries_of(self._shapes)
        self.counters.go_to(state["counters"])
        self.updates.clear()
        self._keep_unread(self._unread_of(state))

    def _unread_of(self, state: dict[str, Any]) -> list[Matches]:
        """The matches that no call had returned when the state was stored, of the queries that still run."""
        stored = state.get(_UNREAD)
        if not stored:
            return []
        shapes = {tuple(_spec(shape)): shape for shape in self._shapes if not shape.hidden}
        matches: list[Match] = []
        for query, form, variables, places, ordinal, retracted, values, because in stored:
            shape = shapes.get((query, form, variables, places))
            if shape is not None:
                row = _tuples(values) if because is None else (*_tuples(values), provenance(because))
                matches.append((Retracted if retracted else Match)(shape, row, ordinal))
        return [Revised(self._shapes, matches)] if matches else []

    def _known(self) -> list[Any]:
        """The background, and the parts of it that stages see, where they differ from it."""
        return [
            self.knowledge,
            *(plan.knowledge for plan, _ in self._rule_stages if plan.knowledge is not self.knowledge),
        ]

    def _go_to_version(self, state: dict[str, Any]) -> None:
        """Go to a version of the background; another vocabulary or schema gives other rules."""
        changed = False
        for known, version in zip(self._known(), state["knowledge"], strict=False):
            if version is not None and known.snapshot() != version:
                self._replanning = True
                known.restore(version)
                changed = True
        self._renew_for(state.get(_GONE, ()), changed)

    def _renew_for(self, gone: Sequence[str], changed: bool) -> None:
        """Make rules that also expect predicates which the background no longer has; ``changed``: it has changed."""
        for plan, _ in self._rule_stages[:1]:  # a background beside several stages of rules does not change
            changed |= plan.expect(gone)
        if changed:
            self._replanning = True
            self.renew(rules=True)
            self._replanning = False

    def _learn_again(self, state: dict[str, Any]) -> None:
        """Repeat updates of the background; if engines share it, it may have them already."""
        updates, before = state["updates"], None if self.knowledge is None else self.knowledge.version
        if before is not None and updates and updates[0][0] <= before:
            self.renew(rules=True)
        for version, graph, add, remove in updates:
            if version > self.knowledge.version:
                self.learn(graph, [tuple(t) for t in add], [tuple(t) for t in remove])
        self._renew_for(state.get(_GONE, ()), False)

    @property
    def goals_in_columns(self) -> bool:
        """Whether the goals are in columns now, so that a batch of columns is worth making, however small."""
        return self.reads_columns and self._stages[0].executor.form == "columns"

    @property
    def journal_entries(self) -> int:
        """The number of entries since the last journal."""
        if self._revision is not None:
            return self._revision.entries
        return sum(stage.executor.entries for stage in self._stages)

    def forget_journal(self) -> None:
        """Drop the journal so far: the caller takes a snapshot instead."""
        if self._revision is not None:
            self._revision.journal()
        for stage in self._stages:
            stage.executor.forget_journal()
        self.updates.clear()

    @contextmanager
    def without_journal(self) -> Iterator[None]:
        """Keep no journal inside the block: the caller takes a snapshot afterwards."""
        self._journaling(False)
        try:
            yield
        finally:
            self._journaling(self._journals)

    @contextmanager
    def into_rows(self) -> Iterator[None]:
        """Restore goals into rows inside the block: a small batch comes next, and columns would hand them back."""
        executors = self._executors
        for executor in executors:
            executor.rows_next = True
        try:
            yield
        finally:
            for executor in executors:
                executor.rows_next = False

    def _journaling(self, on: bool) -> None:
        if self._revision is not None:
            self._revision.recording = on
            return
        for stage in self._stages:
            stage.executor.journaling(on)


_GONE = "gone"
_TIES = "ties"
"""The key of predicates in stored state that the rules expect and the background no longer has; absent if none."""

_UNREAD = "unread"
"""The key of matches in stored state; without such matches the key is absent."""


def _unread(parts: Sequence[Matches]) -> dict[str, Any]:
    """Matches as plain data."""
    matches = [match for part in parts for match in part]
    return {_UNREAD: [_plain_match(match) for match in matches]} if matches else {}


def _plain_match(match: Match) -> list[Any]:
    row, because = match._row, None
    if isinstance(row[-1], Provenance):
        row, because = row[:-1], plain(row[-1])
    return [*_spec(match.shape), match.ordinal, match.retracted, row, because]


def _spec(shape: Shape) -> list[Any]:
    """What must be the same for a row to have the same meaning."""
    return [shape.query, shape.output.form, " ".join(shape.variables), " ".join(map(str, shape.places))]


def _tuples(values: Sequence[Any]) -> tuple[Any, ...]:
    """A row: MessagePack makes lists of all tuples (a DESCRIBE has its triples in one)."""
    return tuple(_tuples(value) if isinstance(value, list) else value for value in values)


def queries_of(shapes: Sequence[Shape]) -> frozenset[str]:
    """The names of the queries with these shapes."""
    return shapes.queries if isinstance(shapes, LazyShapes) else frozenset(shape.query for shape in shapes)


def _no_background() -> SnapshotError:
    return SnapshotError("the stored state belongs to an engine with background knowledge; give this one the same")
