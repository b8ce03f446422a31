"""A client that means harm beside an honest one: the honest one notices nothing.

A few seconds in the suite, ten minutes with ``--nightly``: only then are latency and memory judged as promised.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from tests.containers.hostile import JSON, QUERY, STREAM, TURTLE
from tests.containers.server import Server
from tests.processes import PATIENCE

ROOT = Path(__file__).parents[2]
RISE = """PREFIX : <http://e/>
SELECT ?low ?high { ?c :price ?low } SEQ { ?c :price ?high } FILTER (?high > ?low && getDURATION() < "PT1S"^^<http://www.w3.org/2001/XMLSchema#duration>)"""
LIMITS = {"step_seconds": 2.0, "compile_seconds": 2.0, "connections_per_address": 400, "header_seconds": 2.0}
SHORT = LIMITS | {"step_seconds": 0.4, "compile_seconds": 1.0}
MOST_MS = 250.0


MANY = "SELECT ?x WHERE { ?c <http://e/price> ?x FILTER (?x = %d) }"


@pytest.mark.parametrize("revise", [0, 600_000_000], ids=["many queries", "corrections"])
def test_readers_withdrawals_and_registrations_end_no_program_and_delay_nobody(
    start: Callable[..., Server], request: pytest.FixtureRequest, revise: int
) -> None:
    """Whoever may read asks without end, and whoever may write withdraws and registers without end."""
    long = bool(request.config.getoption("--nightly"))
    seconds = 300.0 if long else 3.0
    limits = {"questions_per_minute": 1_000_000, "question_seconds": 2.0}
    server = start(engine="etalis", revise=revise, store=None, limits=limits)
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        stream = http.post("/", content=STREAM, headers=TURTLE | {"Slug": "honest"}).headers["location"]
        # With the queries of others on other predicates, the honest stream has withdrawals in one case only.
        harmed = http.post("/", content=STREAM, headers=TURTLE).headers["location"] if not revise else stream
        victims = [harmed, http.post(stream, content=RISE, headers=QUERY | {"Slug": "rise"}).headers["location"]]
        standing = ""
        if not revise:
            victims.append(http.post(f"{stream}?queries=many", headers=QUERY | {"Slug": "all"}).headers["location"])
            standing = http.put(f"{victims[2]}/mine", content=MANY % 3, headers=QUERY).headers["location"]
        command = [sys.executable, "-m", "tests.containers.hostile", server.url, str(seconds), *victims]
        hostile = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        latencies, lags, posted, end = [], [], 0, time.monotonic() + seconds
        while time.monotonic() < end:
            for asked in (
                http.build_request("POST", stream, content=f"<#c> <http://e/price> {posted} .", headers=TURTLE),
                http.build_request("GET", stream, params={"newest": 5}),
                *(http.build_request("GET", program, headers=JSON) for program in (victims[1], *victims[2:])),
            ):
                begin = time.perf_counter()
                answer = http.send(asked)
                latencies.append(1000 * (time.perf_counter() - begin))
                assert answer.status_code in (200, 201), answer.text
                if "behind" in (state := answer.json() if asked.headers.get("accept") == JSON["Accept"] else {}):
                    assert (state["state"], state["error"]) == ("running", "")
                    lags.append(state["behind"])
            posted += 1
            time.sleep(0.02)
        output, _ = hostile.communicate(timeout=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while http.get(victims[1], headers=JSON).json()["behind"] and time.monotonic() < deadline:
            time.sleep(0.2)
        states = [http.get(program, headers=JSON).json() for program in (victims[1], *victims[2:])]
        if standing:
            assert http.get(standing, headers=JSON).json()["matches"] == 1
    latencies.sort()
    p50, p99 = latencies[len(latencies) // 2], latencies[int(0.99 * len(latencies))]
    print(f"{len(latencies)} requests, p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {latencies[-1]:.1f} ms")
    print(f"graphs that waited: {sorted(lags)[len(lags) // 2]} in the middle, {max(lags)} at most")
    print(json.dumps(json.loads(output), indent=1))
    assert hostile.returncode == 0
    assert [(state["state"], state["error"], state["behind"]) for state in states] == [("running", "", 0)] * len(states)
    assert p99 <= MOST_MS or not long


def test_an_honest_client_notices_nothing_of_a_hostile_one(
    start: Callable[..., Server], request: pytest.FixtureRequest
) -> None:
    long = bool(request.config.getoption("--nightly"))
    seconds = 600.0 if long else 6.0
    server = start(engine="etalis", limits=LIMITS if long else SHORT)
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        stream = http.post("/", content=STREAM, headers=TURTLE | {"Slug": "honest"}).headers["location"]
        program = http.post(stream, content=RISE, headers=QUERY | {"Slug": "rise"}).headers["location"]
        command = [sys.executable, "-m", "tests.containers.hostile", server.url, str(seconds)]
        hostile = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        process = psutil.Process(server.process.pid)
        latencies, memory, posted = {"post": [], "read": [], "program": []}, [], 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            body = f"<#c> <http://e/price> {posted} ."
            for kind, asked in (
                ("post", http.build_request("POST", stream, content=body, headers=TURTLE)),
                ("read", http.build_request("GET", stream, params={"newest": 5})),
                ("program", http.build_request("GET", program, headers=JSON)),
            ):
                begin = time.perf_counter()
                answer = http.send(asked)
                latencies[kind].append(1000 * (time.perf_counter() - begin))
                assert answer.status_code in (200, 201), answer.text
            posted += 1
            memory.append(process.memory_info().rss / 2**20)
            time.sleep(0.05)
        output, _ = hostile.communicate(timeout=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while (state := http.get(program, headers=JSON).json())["pushed"] < posted and time.monotonic() < deadline:
            time.sleep(0.2)
    report = json.loads(output)
    for kind, values in latencies.items():
        values.sort()
        p50, p99 = values[len(values) // 2], values[int(0.99 * len(values))]
        print(f"{kind}: {len(values)} requests, p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {values[-1]:.1f} ms")
    third = len(memory) // 3
    before, after = max(memory[:third]), max(memory[-third:])
    print(
        f"memory of the server: {memory[0]:.0f} MiB at first, {before:.0f} MiB at most in the first third, "
        f"{after:.0f} MiB in the last"
    )
    print(json.dumps(report, indent=1))
    assert hostile.returncode == 0
    assert not report["unstopped"], "what exceeds a limit is stopped"
    assert (state["pushed"], state["state"]) == (posted, "running"), "the honest program has read all"
    every = sorted(value for values in latencies.values() for value in values)
    assert every[int(0.99 * len(every))] <= MOST_MS or not long
    # In the short run the caches are still filling: each connection to the store keeps a few megabytes.
    assert after <= (1.05 * before + 4 if long else before + 32), "the memory of the server does not grow"
    assert server.stop() == 0
    assert not [p for p in psutil.process_iter(["cmdline"]) if os.fspath(server.log) in (p.info["cmdline"] or [])]
