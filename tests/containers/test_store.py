"""The store by itself: windows against their definition, the cost of a window, retention, restart, group commits."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.containers import changes, graphs, rendering, spans
from etalis_py.containers import vocabulary as v
from etalis_py.containers.catalogue import CatalogueEntry
from etalis_py.containers.limits import Limits
from etalis_py.containers.problems import Problem
from etalis_py.containers.schema import StoreError
from etalis_py.containers.spec import Duration, Window
from etalis_py.containers.store import Store
from etalis_py.containers.transaction import StoredMember
from etalis_py.events.clock import parse_datetime, render_datetime
from tests.draws import examples
from tests.processes import comes

RESULT_TIME = "<http://www.w3.org/ns/sosa/resultTime>"
OTHER = "<http://ex.org/otherTime>"
SECOND = 1_000_000


def open_store(path: Path | None = None, **options: object) -> Store:
    store = Store(path, **options)  # type: ignore[arg-type]
    store.change(changes.ensure_root, alone=True)
    return store


def base(store: Store) -> graphs.Base:
    return graphs.Base(store.base, "http://h/")


def make(store: Store, description: str = "") -> CatalogueEntry:
    body = f"<> a {v.STREAM_CONTAINER} ; {v.CONTENT_TIMESTAMP_RELATION} {RESULT_TIME} . {description}"
    graph = graphs.parse(body.encode(), graphs.TURTLE, f"/{graphs.SELF}/", base(store), 1000)
    return store.change(changes.add_container("/", graph, v.STREAM_CONTAINER, slug="s"), alone=True)


def post(store: Store, path: str, *times: int, other: int | None = None, triples: int = 1) -> list[StoredMember]:
    futures = []
    for t in times:
        body = f'<> {RESULT_TIME} "{render_datetime(t)}"^^<{graphs.DATE_TIME}> .'
        if other is not None:
            body += f'<> {OTHER} "{render_datetime(other)}"^^<{graphs.DATE_TIME}> .'
        body += "".join(f'<> <http://ex.org/p> "{i}" .' for i in range(triples - 1 - (other is not None)))
        graph = graphs.parse(body.encode(), graphs.TURTLE, f"{path}{graphs.SELF}", base(store), 1000)
        futures.append(store.submit(changes.add_member(path, graph, 0)))
    return [f.result() for f in futures]


def times_in(store: Store, container: CatalogueEntry, span: spans.MemberSpan) -> list[int]:
    return [m.time for chunk in rendering.span_members(store, container, span, 2**63 - 1) for m in chunk]


# Times around a few seconds, so that bounds are often met exactly.
TIMES = st.lists(st.integers(0, 12), max_size=25)


@settings(max_examples=examples(2 / 5))
@given(TIMES, st.integers(1, 8), st.integers(-2, 20))
def test_the_whole_window_is_now_minus_alpha_to_now_and_membership_is_figure_5(
    times: list[int], alpha: int, now: int
) -> None:
    store = open_store()
    try:
        container = make(store)
        post(store, container.path, *times)
        window = Window("w", "<x:w>", "<x:in>", RESULT_TIME, logical=Duration(0, alpha))
        with store.reading() as db:
            whole = spans.content(db, container.id, RESULT_TIME, window, now)
            members = spans.membership(db, container.id, RESULT_TIME, window, now)
        assert times_in(store, container, whole) == sorted(t for t in times if now - alpha < t <= now)
        assert times_in(store, container, members) == sorted(t for t in times if t >= now - alpha)
    finally:
        store.close()


@settings(max_examples=examples(4 / 15))
@given(TIMES, st.integers(1, 5), st.integers(1, 4), st.integers(0, 3))
def test_requests_every_beta_give_the_windows_of_rsp_ql(times: list[int], alpha: int, beta: int, t0: int) -> None:
    """[SC] §3.3, [RSPQL] Def. 11: W(α, β, t0) is the sequence of W(o, c] with o = t0 + iβ and c = t0 + α + iβ."""
    store = open_store()
    try:
        container = make(store)
        post(store, container.path, *times)
        window = Window("w", "<x:w>", "<x:in>", RESULT_TIME, logical=Duration(0, alpha))
        for i in range(5):
            opens, closes = t0 + i * beta, t0 + alpha + i * beta
            with store.reading() as db:
                span = spans.content(db, container.id, RESULT_TIME, window, closes)
            assert times_in(store, container, span) == sorted(t for t in times if opens < t <= closes)
    finally:
        store.close()


@settings(max_examples=examples(4 / 15))
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4)), max_size=15), st.integers(1, 12), st.integers(0, 9))
def test_a_physical_window_is_the_longest_newest_part_of_at_most_n_triples(
    posts: list[tuple[int, int]], n: int, now: int
) -> None:
    store = open_store()
    try:
        container = make(store)
        for t, size in posts:
            post(store, container.path, t, triples=size)
        window = Window("w", "<x:w>", "<x:in>", RESULT_TIME, physical=n)
        with store.reading() as db:
            span = spans.content(db, container.id, RESULT_TIME, window, now)
        ordered = sorted(((t, i, size) for i, (t, size) in enumerate(posts) if t <= now), reverse=True)
        expected, total = [], 0
        for t, _, size in ordered:
            total += size
            if total > n:
                break
            expected.append(t)
        assert times_in(store, container, span) == expected[::-1]
    finally:
        store.close()


def test_a_window_by_another_relation_reads_its_own_times() -> None:
    store = open_store()
    container = make(store)
    post(store, container.path, 1, other=9)
    post(store, container.path, 9, other=1)
    post(store, container.path, 9)
    window = Window("w", "<x:w>", "<x:in>", OTHER, logical=Duration(0, 3))
    with store.reading() as db:
        for span in (spans.content, spans.membership):
            found = spans.rows(db, span(db, container.id, RESULT_TIME, window, 10), "name")
            assert found == [(9, 1, "0")]
    store.close()


def test_a_window_reads_its_own_rows_however_many_there_are(tmp_path: Path) -> None:
    """The steps of SQLite's machine for a window of ten, over two hundred members and over two hundred thousand."""

    def steps(members: int) -> int:
        store = open_store(tmp_path / f"{members}.db")
        container = make(store)
        with store._memory:
            store._writer.execute("BEGIN")
            store._writer.executemany(
                "INSERT INTO members (container, name, time, triples, version, body) VALUES (?, ?, ?, 1, 1, x'')",
                ((container.id, str(i), i) for i in range(members)),
            )
            store._writer.execute("COMMIT")
        window = Window("w", "<x:w>", "<x:in>", RESULT_TIME, logical=Duration(0, 10))
        counted = 0

        def tick() -> None:
            nonlocal counted
            counted += 1

        with store.reading() as db:
            db.set_progress_handler(tick, 1)
            span = spans.content(db, container.id, RESULT_TIME, window, members // 2)
            assert len(spans.rows(db, span, "name, body")) == 10
            assert len(spans.rows(db, spans.whole(container.id), "name", newest_first=True, limit=5)) == 5
            physical = Window("w", "<x:w>", "<x:in>", RESULT_TIME, physical=10)
            assert spans.content(db, container.id, RESULT_TIME, physical, members)
            assert len(rendering.arrivals(store, container, members - 5, 100)) == 5
            assert rendering.latest(store, container, 3)
            db.set_progress_handler(None, 0)
        store.close()
        return counted

    assert steps(200_000) <= 1.1 * steps(200)


def test_times_of_arrival_follow_the_order_of_storing() -> None:
    """What was overtaken is not before what overtook it, but a clock that was set back is followed."""
    store = open_store()
    container = make(store)
    graph = graphs.parse(b"<urn:a> <urn:p> 1 .", graphs.TURTLE, f"{container.path}{graphs.SELF}", base(store), 1000)
    hour = 3600 * SECOND
    arrivals = [hour, hour - 5, hour + 1, 10, 11]
    stored = [store.change(changes.add_member(container.path, graph, arrival)) for arrival in arrivals]
    assert [one.time for one in stored] == [hour, hour, hour + 1, 10, 11]
    [own] = post(store, container.path, 3)
    assert own.time == 3, "a time of its own stays"
    store.close()


def test_months_are_counted_by_calendar() -> None:
    before = Duration(1, 0).before
    assert before(parse_datetime("2021-03-31T12:00:00Z")) == parse_datetime("2021-02-28T12:00:00Z")
    assert before(parse_datetime("2021-01-15T00:00:00Z")) == parse_datetime("2020-12-15T00:00:00Z")
    assert Duration(14, SECOND).before(parse_datetime("2021-03-01T00:00:00Z")) == parse_datetime("2019-12-31T23:59:59Z")


def test_retention_by_count_and_by_age_keeps_the_newest_and_uses_no_name_again() -> None:
    now = 1_000 * SECOND
    store = open_store(clock=lambda: now)
    container = make(
        store, f'<> {v.RETAIN_COUNT} 5 ; {v.RETAIN_FOR} "PT100S"^^<http://www.w3.org/2001/XMLSchema#duration> .'
    )
    post(store, container.path, *(t * SECOND for t in [950, 880, 990, 960, 970, 980, 899, 900, 901]))
    assert comes(lambda: store.catalogue.by_path[container.path].members <= 5)
    kept = times_in(store, container, spans.whole(container.id))
    assert [t // SECOND for t in kept] == [950, 960, 970, 980, 990]
    counted = store.catalogue.by_path[container.path]
    assert (counted.members, counted.triples) == (5, 5)
    assert post(store, container.path, now)[0].name == "9"
    store.close()


def test_what_is_deleted_with_its_container_leaves_the_file(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s.db")
    container = make(store)
    post(store, container.path, *range(450), other=3, triples=2)
    store.change(changes.delete_container(container.path, lambda state: None), alone=True)
    with pytest.raises(Problem, match="gone"):
        post(store, container.path, 1)

    def is_empty() -> bool:
        with store.reading() as db:
            rows = db.execute("SELECT (SELECT count(*) FROM members) + (SELECT count(*) FROM stamps)").fetchone()
        return rows == (0,)

    assert comes(is_empty)
    store.close()


def test_a_store_opens_again_as_it_was(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s.db")
    container = make(store)
    post(store, container.path, 1, 2, 3)
    before = store.catalogue.by_path[container.path]
    store.close()
    again = open_store(tmp_path / "s.db")
    assert again.catalogue.by_path[container.path] == before
    assert post(again, container.path, 4)[0].name == "3"
    again.close()


def test_a_refused_change_leaves_no_trace_on_its_neighbours() -> None:
    store = open_store()
    container = make(store)
    good = graphs.parse(b"<> a <x:y> .", graphs.TURTLE, f"{container.path}{graphs.SELF}", base(store), 10)

    def failing(transaction: object) -> None:
        changes.add_member(container.path, good, 0)(transaction)  # type: ignore[arg-type]
        raise Problem("constraint", "after all")

    futures = [
        store.submit(change)
        for change in (
            changes.add_member(container.path, good, 1),
            failing,
            changes.add_member(container.path, good, 2),
        )
    ]
    assert futures[0].result().name == "0"
    with pytest.raises(Problem, match="after all"):
        futures[1].result()
    assert futures[2].result().name == "1"
    assert store.catalogue.by_path[container.path].members == 2
    store.close()


def test_a_store_that_cannot_be_written_refuses_and_recovers(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s.db")
    container = make(store)
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    store._writer.execute("PRAGMA busy_timeout = 50")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Problem, match="cannot be written"):
        post(store, container.path, 1)
    other.execute("ROLLBACK")
    assert post(store, container.path, 1)[0].name == "0"
    store.close()


def test_one_file_has_one_server(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s.db")
    with pytest.raises(StoreError, match="in use by another server"):
        Store(tmp_path / "s.db")
    store.close()
    Store(tmp_path / "s.db").close()
    (tmp_path / "no.db").write_text("this is no database, it is far too long to be taken for an empty one" * 20)
    with pytest.raises(StoreError, match=r"no store|cannot open"):
        Store(tmp_path / "no.db")
    with pytest.raises(StoreError):
        Store(tmp_path)


@pytest.mark.parametrize("table", ["orders (a)", "containers (a)", "meta (a)", "meta (key, value, more)"])
def test_the_database_of_another_program_is_refused_and_stays_as_it_is(tmp_path: Path, table: str) -> None:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as other:
        other.execute(f"CREATE TABLE {table}")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"another program, with the table {table.split()[0]}; name another file"):
        Store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("hard", [False, True])
def test_a_link_to_a_store_is_that_store(tmp_path: Path, hard: bool) -> None:
    store = open_store(tmp_path / "s.db")
    container = make(store)
    link = tmp_path / "link.db"
    if hard:
        link.hardlink_to(tmp_path / "s.db")
    else:
        link.symlink_to("s.db")
    with pytest.raises(StoreError, match="in use by another server"):
        Store(link)
    assert post(store, container.path, 1)[0].name == "0"
    store.close()
    Store(tmp_path / "s.db").close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_whose_file_is_gone_takes_nothing_more(tmp_path: Path, replaced: bool) -> None:
    """What was acknowledged then would be lost when the server ends."""
    store = open_store(tmp_path / "s.db")
    container = make(store)
    (tmp_path / "s.db").rename(tmp_path / "moved.db")
    if replaced:
        (tmp_path / "s.db").write_bytes((tmp_path / "moved.db").read_bytes())
    with pytest.raises(Problem, match="was moved, removed or replaced; put that file back"):
        post(store, container.path, 1)
    with pytest.raises(Problem, match="the store cannot be read"), store.reading():
        pass
    (tmp_path / "moved.db").rename(tmp_path / "s.db")
    assert post(store, container.path, 1)[0].name == "0"
    store.close()


def test_a_literal_that_looks_like_an_address_stays_as_it_is() -> None:
    store = open_store()
    container = make(store)
    body = '<> <http://ex.org/p> "<http://h/x>" , "_:b0" , "line\\nline ." ; <http://ex.org/q> <http://h/x>, _:b .'
    graph = graphs.parse(body.encode(), graphs.TURTLE, f"{container.path}{graphs.SELF}", base(store), 100)
    stored = store.change(changes.add_member(container.path, graph, 5))
    elsewhere = graphs.Base(store.base, "https://other.org/")
    found = set(graphs.triples_of(elsewhere.out(stored.body)))
    me = "<https://other.org/s/0>"
    assert {o for s, p, o in found if p == "<http://ex.org/p>"} == {'"<http://h/x>"', '"_:b0"', '"line\\nline ."'}
    assert (me, "<http://ex.org/q>", "<https://other.org/x>") in found
    quads = rendering.encode_members([stored], graphs.NQUADS, elsewhere)
    assert len(quads.splitlines()) == 7
    store.close()


def test_waiting_writes_are_bounded() -> None:
    store = open_store(limits=Limits(waiting_writes=1))
    container = make(store)
    graph = graphs.parse(b"", graphs.TURTLE, f"{container.path}{graphs.SELF}", base(store), 10)
    change = changes.add_member(container.path, graph, 0)
    with store._memory:  # the writer waits: one change in its hands, one in the queue
        store.submit(change)
        time.sleep(0.3)
        store.submit(change)
        with pytest.raises(Problem, match="waiting_writes"):
            store.submit(change)
    store.close()


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: data[:100] + b"X" * 8_000], ids=["cut", "overwritten"]
)
def test_a_damaged_store_is_not_called_something_else(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """Whoever took another file would begin without the streams that are still in this one."""
    Store(file := tmp_path / "s.db").close()
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(StoreError, match=r"s\.db is damaged: .*; put a backup in its place, or save what 'sqlite3 "):
        Store(file)
