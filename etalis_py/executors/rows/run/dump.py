"""The state of the row executor as plain data: the whole state, or the changes to it.

Only times and columns are written; decoded values are computed again on reading.  A dump names its nodes, so an
executor that has these nodes can read it; otherwise it is refused with the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

from etalis_rules import program as ir

from etalis_py.executors.rows.generate.provenance import plain, provenance
from etalis_py.executors.rows.run.asp_steps import LivePrograms
from etalis_py.executors.rows.run.goals import GoalStore, rebuilt
from etalis_py.executors.rows.run.state import State
from etalis_py.kernel.options import Options
from etalis_py.kernel.protocol import Row
from etalis_py.kernel.stored import SnapshotError

OF_TABLES = ("=", "+=", "-=")
"""Entries of a journal that columns write (``executors.columns.journal``)."""


class Dumped(Protocol):
    """What a dump needs of an executor."""

    state: State
    options: Options
    answer_sets: LivePrograms | None
    given: ir.Rules

    def fit_chains(self, goals: Iterable[Sequence[Any]]) -> None: ...

    def operator(self, name: str, side: int = 0) -> Callable[[int, list[Row]], Any]: ...


def written(executor: Dumped) -> dict[str, Any]:
    """The whole state."""
    state, explain = executor.state, executor.options.explain
    return {
        "nodes": _names(executor),
        "explain": explain,
        "goals": [_goals(store, explain) for store in state.stores.values()],
        "groups": {name: group.snapshot() for name, group in state.groups.items()},
        "closures": {name: closure.snapshot() for name, closure in state.closures.items()},
        "slices": {name: sliced.passed for name, sliced in state.slices.items()},
        "runs": {name: _runs(executor, name) for name in state.runs},
        "log": {} if state.log is None else {n: [list(x) for x in some] for n, some in state.log.by_stream().items()},
        "programs": [] if executor.answer_sets is None else executor.answer_sets.snapshot(),
    }


def _names(executor: Dumped) -> list[str]:
    """The nodes of the rules as they were given, with the joins that chains stand for."""
    return sorted(name for name, _ in executor.given.nodes)


def _runs(executor: Dumped, name: str) -> list[Any]:
    """The runs of a node."""
    runs, explain = executor.state.runs[name], executor.options.explain
    width = executor.state.layouts[runs.node.child.node].width
    return runs.snapshot(lambda x: _stored(x, width, explain), plain)


def _goals(store: GoalStore, explain: bool) -> list[Any]:
    """Node, side, the columns (end, start, terms), and why each goal is there."""
    goals = list(store.dump())
    columns = [[x[i] for x in goals] for i in range(store.layout.width)]
    return [store.node, store.side, columns, [plain(x[-1]) for x in goals] if explain else None]


def read(executor: Dumped, data: Mapping[str, Any]) -> None:
    """Put an executor into the state of a dump."""
    state, explain = executor.state, executor.options.explain
    if data["nodes"] != _names(executor):
        differing = len(set(data["nodes"]) ^ set(_names(executor)))
        raise SnapshotError(
            f"the snapshot belongs to other rules ({differing} goals differ); restore it into an engine with the same "
            "programs, policy and background vocabulary"
        )
    if data["explain"] != explain:
        raise SnapshotError("the snapshot was made with another setting of explain; use the same one")
    goals = {(node, side): (columns, why) for node, side, columns, why in data["goals"]}
    for key, store in state.stores.items():
        store.clear()
        columns, why = goals.get(key, ((), None))
        rows = zip(*columns, strict=True) if isinstance(columns, list | tuple) else _rows_of(columns)
        if why is not None:
            rows = ((*row, provenance(reason)) for row, reason in zip(rows, why, strict=True))
        store.insert_all(rows)
    for name, group in state.groups.items():
        if name in data["groups"]:
            _restore_group(executor, name, data["groups"][name])
        else:
            group.clear()
    for name, closure in state.closures.items():
        closure.restore(data["closures"].get(name, []))
    for name, sliced in state.slices.items():
        sliced.passed = data["slices"].get(name, 0)
    for name in state.runs:
        _restore_runs(executor, name, data.get("runs", {}).get(name, []))
    state.log = None
    for stream, occurrences in _logs(data).items():
        log = state.history.of_stream(stream) if stream else state.history
        for s, p, o, start, end in occurrences:
            log.add(start, end, ((s, p, o),))
    if executor.answer_sets is not None:
        executor.answer_sets.restore(data["programs"])


def _rows_of(table: Any) -> Iterable[tuple[Any, ...]]:
    from etalis_py.kernel.goals import plain_columns  # loads Arrow, which whoever has a table has loaded

    return zip(*plain_columns(table), strict=True)


def adopt(executor: Dumped, others: Iterable[Mapping[str, Any]], own: Container[str]) -> None:
    """Take over the state of nodes from the dumps of other executors, except for the executor's ``own`` nodes."""
    data = written(executor)
    goals = [entry for entry in data["goals"] if entry[0] in own]
    for other in others:
        goals += [entry for entry in other["goals"] if entry[0] not in own]
        for part in ("groups", "closures", "slices", "runs"):
            data[part] = {**data[part], **{name: state for name, state in other[part].items() if name not in own}}
        mine, theirs = _logs(data), _logs(other)
        data["log"] = {n: _merged(mine.get(n, ()), theirs.get(n, ())) for n in dict.fromkeys((*mine, *theirs))}
    executor.fit_chains(goals)
    read(executor, {**data, "goals": goals})


def hand_on_journal(executor: Dumped, names: Mapping[str, str]) -> None:
    """Give what operators took since the last journal to the nodes (keys) that take over their state."""
    heirs: dict[str, list[str]] = {}
    for new, old in names.items():
        heirs.setdefault(old, []).append(new)
    journal = executor.state.journal
    taken = [entry for entry in journal if isinstance(entry, tuple) and entry[0] in heirs]
    journal.extend((new, *entry[1:]) for entry in taken for new in heirs[entry[0]])


def note_adopted(executor: Dumped, nodes: Container[str]) -> None:
    """Write the goals that these nodes have taken over into the journal."""
    if not executor.options.journal or executor.options.explain:
        return
    import numpy as np  # takes a while to import
    import pyarrow as pa

    from etalis_py.kernel.goals import goals_table

    for (node, side), store in executor.state.stores.items():
        if node in nodes:
            goals = sorted(store.dump(), key=itemgetter(0))
            ends, starts = (np.array([x[i] for x in goals], np.int64) for i in (0, 1))
            places = range(2, store.layout.width)
            terms = [pa.array([x[i] or None for x in goals], pa.large_string()) for i in places]
            executor.state.journal.append(["=", node, side, goals_table(ends, starts, terms)])


def _logs(data: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The history of a dump by stream; earlier versions kept it without the streams."""
    log = data["log"]
    return dict(log) if isinstance(log, Mapping) else {"": log} if log else {}


def _merged(mine: Iterable[Any], theirs: Iterable[Any]) -> list[Any]:
    """The occurrences of two histories, each once, in order of their ends."""
    return sorted(map(list, dict.fromkeys(map(tuple, (*mine, *theirs)))), key=itemgetter(4))


def _restore_group(executor: Dumped, name: str, data: Any) -> None:
    group = executor.state.groups[name]
    layout = executor.state.layouts[group.node.child.node]
    group.restore(data, lambda x: rebuilt(layout, x))


def _restore_runs(executor: Dumped, name: str, data: Any) -> None:
    runs, explain = executor.state.runs[name], executor.options.explain
    layout = executor.state.layouts[runs.node.child.node]
    runs.restore(data, lambda raw: rebuilt(layout, _solution(raw, layout.width, explain)), provenance)


def take_out_operators(executor: Dumped, relaid: Container[str]) -> dict[str, Any]:
    """Remove and return the state of operators over nodes that get another layout; they are created again."""
    state = executor.state
    groups = [name for name, group in state.groups.items() if group.node.child.node in relaid]
    runs = [name for name, run in state.runs.items() if run.node.child.node in relaid]
    kept = {name: state.groups.pop(name).snapshot() for name in groups}
    kept |= {name: _runs(executor, name) for name in runs}
    for name in runs:
        del state.runs[name]
    return kept


def put_back_operators(executor: Dumped, kept: Mapping[str, Any]) -> None:
    for name, data in kept.items():
        executor.operator(name)  # creates it
        (_restore_group if name in executor.state.groups else _restore_runs)(executor, name, data)


def journal(executor: Dumped) -> list[Any]:
    """The goals inserted and retracted since the last journal, and operators' input; its size follows the changes."""
    state, explain = executor.state, executor.options.explain
    keys = {store.number: (key, store.layout.width) for key, store in state.stores.items()}
    entries: list[list[Any]] = []
    for entry in state.journal:
        if isinstance(entry, list):  # changes in columns, in stored form
            if (entry[1], entry[2]) in state.stores:  # else an update replaced the rules and this node with them
                entries.append(entry)
        elif isinstance(entry[0], int):
            number = entry[0] if entry[0] >= 0 else -entry[0] - 1
            if number not in keys:  # an update replaced the rules and this node with them
                continue
            (node, side), width = keys[number]
            entries.append(["+" if entry[0] >= 0 else "-", node, side, _stored(entry[1], width, explain)])
        elif entry[0]:
            if entry[0] not in state.nodes:
                continue
            name, t, rows, side = entry
            width = state.layouts[ir.refs(state.nodes[name])[side].node].width
            entries.append(["o", name, t, [_stored(x, width, explain) for x in rows], side])
        else:
            entries.append(["h", entry[1], entry[2]])
    state.journal.clear()
    slices = {name: sliced.passed for name, sliced in state.slices.items()}
    return [entries, slices, [] if executor.answer_sets is None else executor.answer_sets.journal()]


def is_of(entry: Any, nodes: Container[str]) -> bool:
    """Whether an unwritten entry should be kept if only these nodes remain: it is of one of them, or of no node.

    An entry of a goal in rows only has the number of its store.  It may be kept in any case: if a node comes again, its
    store has another number.
    """
    name = entry[1] if isinstance(entry, list) else entry[0]
    return isinstance(name, int) or not name or name in nodes


def drop(state: State, kept: frozenset[str]) -> None:
    """Forget the state of removed nodes, and their entries in the journal, since the same nodes may come again."""
    state.stores = {key: store for key, store in state.stores.items() if key[0] in kept}
    state.groups = {name: g for name, g in state.groups.items() if name in kept}
    state.closures = {name: c for name, c in state.closures.items() if name in kept}
    state.slices = {name: s for name, s in state.slices.items() if name in kept}
    state.runs = {name: r for name, r in state.runs.items() if name in kept}
    state.timers = {name: t for name, t in state.timers.items() if name in kept}
    told = [entry for entry in state.journal if is_of(entry, kept)]
    state.journal.clear()
    state.journal.extend(told)


def replay(executor: Dumped, data: Any) -> None:
    """Repeat a journal."""
    entries, slices, programs = data
    state, explain = executor.state, executor.options.explain
    for entry in entries:
        match entry:
            case ["+", node, side, stored]:
                store = _store(executor, node, side)
                if (goal := store.rebuild(_solution(stored, store.layout.width, explain))) is not None:
                    store.insert(goal)
            case ["-", node, side, stored]:
                store = _store(executor, node, side)
                store.retract(_solution(stored, store.layout.width, explain))
            case [kind, node, side, goals] if kind in OF_TABLES:
                store = _store(executor, node, side)
                if kind == "-=":
                    for row in _rows_of(goals):
                        store.retract(row)
                    continue
                if kind == "=":
                    store.clear()
                store.insert_all(_rows_of(goals))
            case ["o", name, t, rows, *side]:
                if name not in state.nodes:
                    raise _unknown(name)
                part = side[0] if side else 0
                layout = state.layouts[ir.refs(state.nodes[name])[part].node]
                solutions = [rebuilt(layout, _solution(x, layout.width, explain)) for x in rows]
                executor.operator(name, part)(t, solutions)
            case ["h", t, occurrences]:
                for s, p, o, start, stream in occurrences:
                    state.history.add(start, t, ((s, p, o),), stream)
            case _:
                raise SnapshotError(f"the journal has an entry of an unknown kind, {entry!r}; replay the stream")
    for name, passed in slices.items():
        if name in state.slices:
            state.slices[name].passed = passed
    if executor.answer_sets is not None:
        executor.answer_sets.apply(programs)


def fitted(executor: Dumped, data: Mapping[str, Any]) -> dict[str, Any]:
    """A dump with only what this executor can use: the goals of nodes that it does not have are left out."""
    return {**data, "nodes": _names(executor)}


def fitted_journal(executor: Dumped, data: Any) -> list[Any]:
    """A journal with only what this executor can use."""
    entries, slices, programs = data
    return [[entry for entry in entries if _is_known(executor, entry)], slices, programs]


def _is_known(executor: Dumped, entry: list[Any]) -> bool:
    match entry:
        case ["o", node, *_]:
            return node in executor.state.nodes
        case [kind, node, side, _] if kind in ("+", "-", *OF_TABLES):
            return (node, side) in executor.state.stores
    return True


def _store(executor: Dumped, node: str, side: str) -> GoalStore:
    store = executor.state.stores.get((node, side))
    if store is None:
        raise _unknown(node)
    return store


def _unknown(node: str) -> SnapshotError:
    return SnapshotError(f"the journal belongs to other rules: this engine has no goals of the node {node}")


def _solution(raw: list[Any], width: int, explain: bool) -> tuple[Any, ...]:
    columns = tuple(raw[:width])
    return (*columns, provenance(raw[width])) if explain else columns


def _stored(x: tuple[Any, ...], width: int, explain: bool) -> list[Any]:
    return [*x[:width], plain(x[-1])] if explain else list(x[:width])
