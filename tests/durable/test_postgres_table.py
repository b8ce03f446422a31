"""A table of PostgreSQL as background: read by a drafted or a given mapping, with the types that its columns have."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from etalis_py import event, reference_table, run
from etalis_py.streams import StreamError
from etalis_py.streams.postgres_table import rows_of
from tests.cli import in_process
from tests.durable import services
from tests.processes import PATIENCE, comes

ABOVE = "SELECT ?p ?l { EVENT { ?o :sku ?p ; :amount ?x } ?row :sku ?p ; :limit ?l FILTER (?x > ?l) }"
LIMITS = "CREATE TABLE limits (sku text, \"limit\" numeric(6, 2)); INSERT INTO limits VALUES ('p1', 100), ('p2', 5.5)"


def execute(address: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(address) as connection:
        connection.execute(statement.encode())


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    pytest.importorskip("psycopg", reason="needs the extra postgresql: pip install 'etalis-py[postgresql]'")
    with services.open_folder() as folder, services.postgres(folder) as address:
        execute(address, LIMITS)
        yield address


def sold(folder: Path) -> None:
    (folder / "sold.csv").write_text("at,order,sku,amount\n1,o1,p1,90\n2,o2,p2,7\n")


NAMED = ["-s", "sold.csv", "--time", "at", "--subject", "order", "-f", "csv"]


def test_events_are_joined_with_a_table(database: str, tmp_path: Path) -> None:
    sold(tmp_path)
    done = in_process.run(["run", "-q", ABOVE, *NAMED, "-b", f"{database}?table=limits"], tmp_path)
    assert (done.returncode, done.stdout) == (0, "p,l,start,end\np2,5.5,2,2\n"), done.stderr
    assert "?table=limits: there is no mapping, so one is drafted: subject :{sku}" in done.stderr


def test_a_mapping_is_for_its_columns(database: str, tmp_path: Path) -> None:
    sold(tmp_path)
    (tmp_path / "m.toml").write_text('[[triple]]\nsubject = ":{sku}"\npredicate = ":most"\nobject = "{limit}"\n')
    query = "SELECT ?o ?l { EVENT { ?o :sku ?p ; :amount ?x } :p2 :most ?l FILTER (?x > ?l && ?p = 'p2') }"
    table = f"{database}?table=limits"
    done = in_process.run(["run", "-q", query, *NAMED, "-b", table, "--background-mapping", "m.toml"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "o,l,start,end\nhttp://example.org/o2,5.5,2,2\n"


def test_columns_keep_their_types(database: str) -> None:
    execute(
        database,
        "CREATE SCHEMA s; CREATE TABLE s.kinds AS SELECT 'a'::text AS id, 7::bigint AS n, 1.5::numeric AS d,"
        " true AS b, '2026-01-31'::date AS day, '2026-01-31T12:00:00Z'::timestamptz AS at, NULL::text AS nothing,"
        " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u",
    )
    triples = reference_table(f"{database}?table=s.kinds", subject="id")
    values = {predicate.rpartition("/")[2][:-1]: value for _, predicate, value in triples}
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert values == {
        "id": '"a"',
        "n": f'"7"^^<{xsd}integer>',
        "d": f'"1.5"^^<{xsd}decimal>',
        "b": f'"true"^^<{xsd}boolean>',
        "day": f'"2026-01-31"^^<{xsd}date>',
        "at": f'"2026-01-31T12:00:00Z"^^<{xsd}dateTime>',
        "u": '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"',
    }


def test_an_empty_table_has_no_triples(database: str) -> None:
    execute(database, "CREATE TABLE nothing (id text)")
    assert reference_table(f"{database}?table=nothing") == []


def test_in_python_it_is_a_background(database: str) -> None:
    events = [event(':o :sku "p2" ; :amount 7', 1)]
    query = "SELECT ?l { EVENT { ?o :sku ?p ; :amount ?x } ?row :sku ?p ; :limit ?l }"
    with pytest.warns(UserWarning, match="a mapping|one is drafted"):
        matches = list(run(query, events, background=f"{database}?table=limits"))
    assert [str(one["l"]) for one in matches] == ["5.5"]


def test_a_change_of_several_rows_is_seen_whole_or_not_at_all(database: str) -> None:
    """Money goes from one account to the other while the table is read: there is always as much of it."""
    execute(database, "CREATE TABLE accounts (id int, money int); INSERT INTO accounts VALUES (1, 50), (2, 50)")
    stopped = threading.Event()

    def move() -> None:
        while not stopped.is_set():
            execute(database, "UPDATE accounts SET money = money - 1 WHERE id = 1;"
                              "UPDATE accounts SET money = money + 1 WHERE id = 2")  # fmt: skip

    writer = threading.Thread(target=move)
    writer.start()
    try:
        seen = [rows_of(f"{database}?table=accounts") for _ in range(30)]
    finally:
        stopped.set()
        writer.join()
    assert {sum(row["money"] for row in rows) for rows in seen} == {100}
    assert len({row["money"] for rows in seen for row in rows}) > 2, "nothing was written meanwhile"


def lasting(folder: Path, database: str, *, code: int = 0) -> str:
    given = ["run", "-q", ABOVE, *NAMED, "-b", f"{database}?table=most", "-o", "o.csv", "--checkpoint", "ck"]
    done = in_process.run(given, folder)
    assert done.returncode == code, done.stderr
    return done.stderr


def test_a_run_with_a_checkpoint_wants_the_same_rows(database: str, tmp_path: Path) -> None:
    """Their order does not matter, and a row that has changed does."""
    sold(tmp_path)
    execute(database, "CREATE TABLE most (sku text, \"limit\" int); INSERT INTO most VALUES ('p1', 100), ('p2', 5)")
    lasting(tmp_path, database)
    execute(database, "DELETE FROM most WHERE sku = 'p1'; INSERT INTO most VALUES ('p1', 100)")
    assert "has come to its end" in lasting(tmp_path, database)
    execute(database, "UPDATE most SET \"limit\" = 6 WHERE sku = 'p2'")
    assert "the content of --background has changed" in lasting(tmp_path, database, code=1)


def test_a_checkpoint_knows_the_rows_that_the_run_has_read(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that changes right after the table was read belongs to the next run."""
    sold(tmp_path)
    execute(database, "DROP TABLE IF EXISTS most; CREATE TABLE most (sku text, \"limit\" int);"
                      "INSERT INTO most VALUES ('p1', 100), ('p2', 5)")  # fmt: skip

    def rows_before_a_change(address: str) -> object:
        rows = rows_of(address)
        execute(database, 'UPDATE most SET "limit" = 1')
        return rows

    with monkeypatch.context() as patch:
        patch.setattr("etalis_py.streams.reference.rows_of", rows_before_a_change)
        lasting(tmp_path, database)
    assert "the content of --background has changed" in lasting(tmp_path, database, code=1)


# --- rows that change while a run is at work ---


class Refreshing:
    """A run that follows a file of sales, beside a table of limits that is read again and again."""

    def __init__(self, database: str, folder: Path) -> None:
        self.database, self.folder = database, folder
        execute(database, "DROP TABLE IF EXISTS now; CREATE TABLE now (sku text, most int);"
                          "INSERT INTO now VALUES ('p1', 100), ('p2', 5)")  # fmt: skip
        (folder / "s.jsonl").write_text("")
        (folder / "m.toml").write_text('subject = ":{sku}"\npredicate = ":most"\nobject = "{most}"\n')

    def start(self) -> subprocess.Popen[str]:
        query = "SELECT ?x ?l { ?p :sold ?x . ?p :most ?l FILTER (?x > ?l) }"
        command = [sys.executable, "-m", "etalis_py.cli.main", "run", "-q", query, "-s", "s.jsonl", "--follow",
                   "-b", f"{self.database}?table=now", "--background-mapping", "m.toml", "--background-refresh", "50ms",
                   "-o", "o.csv", "--idle", "50ms", "--checkpoint", "ck", "--checkpoint-every", "50ms"]  # fmt: skip
        return subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True)

    def sell(self, at: int, product: str, amount: int) -> None:
        with (self.folder / "s.jsonl").open("a") as file:
            file.write(f'{{"time": {at}, "triples": ":{product} :sold {amount} ."}}\n')

    def found(self) -> list[list[int]]:
        path = self.folder / "o.csv"
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        return [[int(cell) for cell in line.split(",")[:3]] for line in lines]


def until(condition: Callable[[], object]) -> None:
    assert comes(condition), "nothing happened in time"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_rows_that_change_hold_from_the_next_event(database: str, tmp_path: Path, how: signal.Signals) -> None:
    """Also those that change while the run is down; what was sold before is not judged again."""
    run = Refreshing(database, tmp_path)
    process = run.start()
    try:
        run.sell(1, "p2", 7)
        run.sell(2, "p1", 7)
        until(lambda: run.found() == [[7, 5, 1]])
        execute(database, "UPDATE now SET most = 6 WHERE sku = 'p1'; DELETE FROM now WHERE sku = 'p2'")
        time.sleep(1)
        run.sell(3, "p2", 8)
        run.sell(4, "p1", 9)
        until(lambda: run.found() == [[7, 5, 1], [9, 6, 4]])
        process.send_signal(how)
        process.communicate(timeout=PATIENCE)
        execute(database, "UPDATE now SET most = 20 WHERE sku = 'p1'; INSERT INTO now VALUES ('p3', 1)")
        process = run.start()
        run.sell(5, "p1", 10)
        run.sell(6, "p3", 2)
        until(lambda: run.found() == [[7, 5, 1], [9, 6, 4], [2, 1, 6]])
    finally:
        process.kill()
        process.communicate()


def test_a_table_that_cannot_be_read_for_a_while_is_told_once(database: str, tmp_path: Path) -> None:
    run = Refreshing(database, tmp_path)
    process = run.start()
    assert process.stderr is not None
    try:
        run.sell(1, "p2", 7)
        until(lambda: run.found() == [[7, 5, 1]])
        execute(database, "ALTER TABLE now RENAME TO away")
        said = next(line for line in process.stderr if "what was read before holds" in line)
        assert 'PostgreSQL says: relation "now" does not exist' in said
        run.sell(2, "p2", 8)
        until(lambda: run.found() == [[7, 5, 1], [8, 5, 2]])
        execute(database, "ALTER TABLE away RENAME TO now")
        assert "it can be read again" in process.stderr.readline()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["-b", "k.ttl"], "is for tables of PostgreSQL"),
        (["-b", "postgresql://h/d?table=t"], "needs --background-mapping FILE"),
        (["-b", "postgresql://h/d?table=t", "--background-stream", "u.jsonl"], "both would change the background"),
        (["-b", "postgresql://h/d?table=t", "--cores", "2"], "is for one engine here"),
        (["-b", "postgresql://h/d?table=t", "--background-refresh", "0s"], "before each event"),
    ],
)
def test_what_a_refresh_is_not_for_is_refused(tmp_path: Path, more: list[str], said: str) -> None:
    sold(tmp_path)
    refresh = [] if "--background-refresh" in more else ["--background-refresh", "1s"]
    done = in_process.run(["run", "-q", ABOVE, *NAMED, *refresh, *more], tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("?table=none", 'PostgreSQL says: relation "none" does not exist'),
        ("", "this address names no table"),
        ("?table=a.", "this address names no table"),
    ],
)
def test_what_is_wrong_is_said(database: str, more: str, said: str) -> None:
    with pytest.raises(StreamError, match=said):
        rows_of(f"{database}{more}")


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(StreamError, match="a password does not belong in an address") as raised:
        rows_of("postgresql://me:secret@host/shop?table=limits")
    assert "secret" not in str(raised.value)
