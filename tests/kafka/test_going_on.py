"""A topic as the source of a run with a checkpoint: every partition goes on from its own offset."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from etalis_py import run
from etalis_py.streams.kafka import read_kafka
from tests.kafka.broker import Broker, broker
from tests.kafka.test_local import address, line, send
from tests.kafka.test_sink import committed

__all__ = ["broker"]
pytest.importorskip("confluent_kafka", reason="needs the extra kafka")

QUERY = "SELECT ?x { ?c <urn:p> ?x }"


def found(broker: Broker, topic: str, folder: Path, stops: list[int], more: str = "?until=now") -> Iterator[int]:
    """The values of matches of runs that are stopped after so many, one after the other."""
    for count in stops:
        with (
            read_kafka(address(broker, topic, more)) as stream,
            run(QUERY, stream, checkpoint=folder / "ck", checkpoint_every=0) as matches,
        ):
            yield from (match["x"] for match in islice(matches, count))


def test_every_partition_goes_on_from_its_own_offset(broker: Broker, tmp_path: Path) -> None:
    """Partition 0 is far ahead of the others in time, so one offset or one count would not do."""
    send(broker, "own", [line(n) for n in range(0, 40)], 0)
    send(broker, "own", [line(n) for n in range(40, 50)], 1)
    send(broker, "own", [line(n) for n in range(50, 60)], 2)
    values = list(found(broker, "own", tmp_path, [17, 30, 100]))
    assert sorted(set(values)) == list(range(60))
    assert len(values) <= 62, "only the last match before each stop comes again"


def test_a_run_goes_on_in_the_middle_of_a_message(broker: Broker, tmp_path: Path) -> None:
    """A message with named graphs is several events; those that were used do not come again."""
    stamp = '<http://www.w3.org/ns/prov#generatedAtTime> "2026-01-01T00:00:0{n}Z"^^'
    stamp = f"<urn:g{{n}}> {stamp}<http://www.w3.org/2001/XMLSchema#dateTime> . <urn:g{{n}}> "
    text = " ".join(stamp.replace("{n}", str(n)) + f"{{ <urn:c> <urn:p> {n} }}" for n in range(6))
    send(broker, "inside", [text], 1)
    values = list(found(broker, "inside", tmp_path, [2, 3, 100], "?until=now&format=trig"))
    assert sorted(set(values)) == list(range(6))
    assert len(values) <= 8


def test_what_a_run_reads_up_to_now_is_decided_once(broker: Broker, tmp_path: Path) -> None:
    send(broker, "ends", [line(n) for n in range(9)])
    first = list(found(broker, "ends", tmp_path, [4]))
    send(broker, "ends", [line(n) for n in range(9, 30)])
    rest = list(found(broker, "ends", tmp_path, [100]))
    assert sorted({*first, *rest}) == list(range(9))


def test_from_now_is_the_now_of_the_first_start(broker: Broker, tmp_path: Path) -> None:
    send(broker, "now", [line(n) for n in range(6)])
    with read_kafka(address(broker, "now", "?from=now&until=now")) as stream:
        assert list(run(QUERY, stream, checkpoint=tmp_path / "a")) == []
    stream = read_kafka(address(broker, "now", "?from=now"), idle=0.2)
    matches = run(QUERY, stream, checkpoint=tmp_path / "ck", checkpoint_every=0)
    send(broker, "now", [line(n) for n in range(6, 12)])
    assert next(iter(matches))["x"] == 6
    matches.close()
    stream.close()
    send(broker, "now", [line(n) for n in range(12, 15)])
    with (
        read_kafka(address(broker, "now", "?from=now"), idle=0.2) as stream,
        run(QUERY, stream, checkpoint=tmp_path / "ck", checkpoint_every=0) as matches,
    ):
        rest: set[int] = set()
        for match in matches:
            rest.add(match["x"])
            if max(rest) == 14:
                break
    assert {*range(7, 15)} <= rest | {6}


def etalis(broker: Broker, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "etalis_py.cli.main", "run", "-q", QUERY, *more, "--checkpoint", "ck"]
    with (folder / "errors").open("ab") as errors:
        return subprocess.Popen(command, cwd=folder, stderr=errors, stdout=errors)


def test_from_topic_to_topic_every_match_once_over_kills(broker: Broker, tmp_path: Path) -> None:
    """Plain JSON by a mapping; one message in fifty is broken, and each of them is in the dead letters once."""
    mapping = 'time = "{at}"\n[[triple]]\nsubject = "<urn:{id}>"\npredicate = "<urn:p>"\nobject = "{value}"\n'
    (tmp_path / "m.toml").write_text(mapping)
    texts = [json.dumps({"at": n, "id": f"c{n % 7}", "value": n}) for n in range(2000)]
    broken = [f'{{"at": {n}' for n in range(0, 2000, 50)]
    for n, text in enumerate(broken):
        texts.insert(n * 51, text)
    send(broker, "raw", texts)
    more = ["-s", address(broker, "raw", "?until=now"), "-m", "m.toml", "-o", address(broker, "alerts"),
            "--checkpoint-every", "100ms", "--on-error", "skip", "--dead-letters", "letters"]  # fmt: skip
    for pause in (2.2, 2.6, 3.0, 0.0):
        process = etalis(broker, tmp_path, *more)
        if pause:
            time.sleep(pause)
            process.kill()
            process.wait()
        else:
            assert process.wait(60) == 0, (tmp_path / "errors").read_text()
    matches = committed(broker, "alerts")
    assert sorted(one["bindings"]["x"] for one in matches) == list(range(2000))
    letters = [json.loads(one)["source"] for one in (tmp_path / "letters").read_text().splitlines()]
    assert len(letters) == len(set(letters)) == len(broken)
