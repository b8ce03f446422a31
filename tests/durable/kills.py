"""``kill -9`` at random moments of real runs, again and again, until one comes to its end; then the output is compared.

``python -m tests.durable.kills KILLS [SEED]`` kills so many runs of each case.  Each run is a fork of this process, so
that it need not load the engine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import etalis_py.cli.lasting
import etalis_py.cli.paced_steps
import etalis_py.cli.progress
import etalis_py.cli.sources
import etalis_py.engine.unseen_names  # noqa: F401 - loaded once, before the forks
from etalis_py.cli.main import main

EVENTS = 12_000
RISING = "SELECT ?c ?x ?y { { { ?c :price ?x } SEQ { ?c :price ?y } } WITHIN PT10S FILTER (?y > ?x) }"
ABSENT = "SELECT ?c ?x { { ?c :price ?x } SEQ NOT { ?c :price 3 } WITHIN 30 SECONDS }"
KNOWN = "SELECT ?c ?x ?k { ?c :price ?x GRAPH ?g { ?c :kind ?k } }"
CASES = {
    "file": (RISING, ["-s", "s.jsonl"], "out.jsonl"),
    "csv": (RISING, ["-s", "s.jsonl"], "out.csv"),
    "parts": (RISING, ["-s", "s.jsonl"], "parts/"),
    "broken lines": (RISING, ["-s", "b.jsonl", "--on-error", "skip", "--dead-letters", "letters"], "out.jsonl"),
    "corrections": (RISING, ["-s", "r.jsonl", "--revise", "12s"], "out.jsonl"),
    "updates": (KNOWN, ["-s", "s.jsonl", "--background-stream", "u.jsonl"], "out.jsonl"),
    "absence": (ABSENT, ["-s", "s.jsonl"], "out.jsonl"),
    "followed": (RISING, ["-s", "f.jsonl", "--follow"], "out.jsonl"),
}


def line(at: int) -> str:
    return json.dumps({"time": at, "triples": f":c{at % 7} :price {at * 13 % 29} ."}) + "\n"


def prepare(folder: Path) -> None:
    """The streams of all cases."""
    lines = [line(at) for at in range(EVENTS)]
    (folder / "s.jsonl").write_text("".join(lines))
    (folder / "f.jsonl").write_text("".join(lines))
    broken = (text + "broken\n" * (at % 700 == 50) for at, text in enumerate(lines))
    (folder / "b.jsonl").write_text("".join(broken))
    withdrawn = (json.dumps(json.loads(lines[at - 9]) | {"retract": True}) + "\n" for at in range(10, EVENTS, 4))
    corrected = (text + (next(withdrawn) if at % 4 == 2 and at >= 10 else "") for at, text in enumerate(lines))
    (folder / "r.jsonl").write_text("".join(corrected))
    changes = ({"time": at, "add": f":c{at % 7} :kind {at} .", "graph": "urn:g"} for at in range(0, EVENTS, 31))
    (folder / "u.jsonl").write_text("".join(json.dumps(change) + "\n" for change in changes))


def forked(arguments: Sequence[str], folder: Path) -> int:
    """The process id of a command of its own."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.chdir(folder)
        os.dup2(os.open("errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        code = main(arguments)
    finally:
        os._exit(code)


def runs(process: int) -> bool:
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def ended(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def content(path: Path) -> str:
    if path.is_dir():
        return "".join(part.read_text() for part in sorted(path.glob("part-*")))
    return path.read_bytes().decode() if path.exists() else ""


def net(text: str) -> dict[str, str]:
    kept: dict[str, str] = {}
    for one in text.splitlines():
        record = json.loads(one)
        if record.get("retracted"):
            del kept[record["id"]]
        else:
            assert record["id"] not in kept, f"{record['id']} comes twice"
            kept[record["id"]] = one
    return kept


class Growing:
    """Writes the lines of a followed file, in portions, while it is read."""

    def __init__(self, path: Path) -> None:
        path.write_text("")
        self._path = path
        self.thread = threading.Thread(target=self._write, daemon=True)
        self.thread.start()

    def _write(self) -> None:
        for begin in range(0, EVENTS, 100):
            with self._path.open("a") as file:
                file.write("".join(line(at) for at in range(begin, begin + 100)))
            time.sleep(0.02)


def judged(case: str, kills: int, draw: Random, folder: Path) -> int:
    """Kill a run so many times, beginning anew whenever one has come to its end; returns the number of kills."""
    query, more, sink = CASES[case]
    prepare(folder)
    (folder / "q.rq").write_text(query)
    arguments = ["run", "q.rq", *more]
    plainly = [text.replace("letters", "letters-of-plain") for text in arguments if text != "--follow"]
    assert ended(forked([*plainly, "-o", f"plain-{sink}"], folder)) == 0, (folder / "errors").read_text()
    expected, out = content(folder / f"plain-{sink}"), folder / sink.rstrip("/")
    done = 0
    while True:
        for left in ("ck", sink.rstrip("/")):
            shutil.rmtree(folder / left, ignore_errors=True)
        for left in (sink, "letters"):
            if (folder / left).is_file():
                (folder / left).unlink()
        growing = Growing(folder / "f.jsonl") if case == "followed" else None
        command = [*arguments, "-o", sink, "--checkpoint", "ck", "--checkpoint-every", "20ms"]
        while True:
            process, until = forked(command, folder), time.monotonic() + draw.random() * draw.choice([0.2, 0.5, 1.5])
            while time.monotonic() < until and runs(process):
                time.sleep(0.002)
            if done < kills and runs(process):
                os.kill(process, signal.SIGKILL)
                done += ended(process) == -signal.SIGKILL
                continue
            if growing is not None:
                growing.thread.join()
                while len(content(out)) < 0.99 * len(expected):
                    time.sleep(0.05)
                os.kill(process, signal.SIGTERM)
            assert ended(process) == 0, (folder / "errors").read_text()[-2000:]
            break
        found = content(out)
        if growing is not None:
            assert expected.startswith(found), case
        else:
            assert net(found) == net(expected) if case == "corrections" else found == expected, case
        assert content(folder / "letters") == content(folder / "letters-of-plain"), case
        if done >= kills:
            return done


if __name__ == "__main__":
    for name in sys.argv[3:] or CASES:
        with tempfile.TemporaryDirectory() as place:
            count = judged(name, int(sys.argv[1]), Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0), Path(place))
            print(f"{name}: {count} kills", flush=True)
