"""``etalis replay``: a table of what was found, a picture, or the matches themselves."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.cli.conftest import Folder, until_it_listens
from tests.processes import PATIENCE

SMALL = ("--companies", "20", "--events", "1500")


def test_the_stock_replay_ends_with_a_table_and_the_path_of_a_picture(folder: Folder) -> None:
    done = folder.etalis("replay", "stock", *SMALL, "--plot", "out.png")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["query", "company", "matches", "from", "to", "found"]
    assert lines[-1] == "the picture is out.png"
    assert (folder.path / "out.png").read_bytes()[:4] == b"\x89PNG"


def test_the_same_seed_finds_the_same_and_another_one_something_else(folder: Folder) -> None:
    def found(seed: str) -> str:
        return folder.etalis("replay", "stock", *SMALL, "--seed", seed, "--format", "jsonl").stdout

    assert found("3") == found("3") != found("4")


def test_other_formats_hold_the_matches_of_the_queries(folder: Folder) -> None:
    done = folder.etalis("replay", "stock", *SMALL, "--format", "jsonl", "--sink", "out.jsonl")
    found = {json.loads(line)["query"] for line in folder.read("out.jsonl").splitlines()}
    assert "rise_without_acquisition" in found
    assert not {"downrated", "next_sum"} & found
    assert done.stdout == ""


def test_a_wrong_price_takes_its_matches_back_when_it_is_corrected(folder: Folder) -> None:
    def reported(*more: str) -> list[dict[str, str]]:
        out = folder.etalis("replay", "stock", *SMALL, "--format", "jsonl", *more).stdout
        return [json.loads(line) for line in out.splitlines()]

    wrong = reported("--wrong-price", "--plot", "out.svg")
    back = [match["id"] for match in wrong if match.get("retracted")]
    assert back
    assert {match["query"] for match in wrong if match.get("retracted")} >= {"drop_with_rating"}
    net = [match["id"] for match in wrong if match["id"] not in back]
    assert sorted(net) == sorted(match["id"] for match in reported())
    assert "ACME fell by more than half" in folder.read("out.svg")
    assert "matches taken back" in folder.read("out.svg")


def test_the_tsunami_replay_detects_the_made_up_tsunami(folder: Folder) -> None:
    lines = folder.etalis("replay", "tsunami", "--stations", "1", "--days", "1").stdout.splitlines()
    assert lines[0].startswith("station  readings  predicted  alarms  tsunami detected")
    assert lines[2].split()[0] == "21418"


def test_the_delivery_replay_tells_what_each_agent_was_told(folder: Folder) -> None:
    lines = folder.etalis("replay", "delivery", "--agents", "2", "--plot", "routes.svg").stdout.splitlines()
    assert lines[0].split()[:3] == ["agent", "requests", "routes"]
    assert [line.split()[0] for line in lines[2:4]] == ["1", "2"]
    assert "<svg" in folder.read("routes.svg")


def test_control_c_ends_a_replay_with_what_was_found_so_far(folder: Folder) -> None:
    process = folder.start("replay", "stock", *SMALL, "--speed", "100000x")
    until_it_listens(process)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert out.splitlines()[-1].startswith(tuple("123456789"))
    events, counted, _ = out.splitlines()[-1].partition(" events, ")
    assert counted
    assert f"etalis: stopped after {events} events; the results cover only these\n" in errors


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["stock", "--companies", "0"], 2, "companies must be from 1 to 500"),
        (["stock", "--input", "no.csv"], 1, "no.csv"),
        (["stock", "--plot", "a.bmp"], 2, ".png, .svg, .pdf"),
        (["stock", "--plot", "no/a.png"], 2, "there is no folder no"),
        (["moon"], 2, "invalid choice: 'moon'"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Folder, arguments: list[str], code: int, expected: str) -> None:
    done = folder.etalis("replay", *arguments, code=code)
    assert expected in done.stderr
