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

ROOT = Path(__file__).parents[2]
RISE = """PREFIX : <http://e/>
SELECT ?low ?high { ?c :price ?low } SEQ { ?c :price ?high } FILTER (?high > ?low && getDURATION() < "PT1S"^^<http://www.w3.org/2001/XMLSchema#duration>)"""
LIMITS = {"step_seconds": 2.0, "compile_seconds": 2.0, "connections_per_address": 400, "header_seconds": 2.0}
SHORT = LIMITS | {"step_seconds": 0.4, "compile_seconds": 1.0}
MOST_MS = 250.0
FREEZE_MS = 2000.0  # in the suite other tests use the same cores, so only a freeze is told from their noise


def test_an_honest_client_notices_nothing_of_a_hostile_one(
    start: Callable[..., Server], request: pytest.FixtureRequest
) -> None:
    long = bool(request.config.getoption("--nightly"))
    seconds = 600.0 if long else 6.0
    server = start(engine="etalis", limits=LIMITS if long else SHORT)
    with httpx.Client(base_url=server.url, timeout=30) as http:
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
        output, _ = hostile.communicate(timeout=120)
        deadline = time.monotonic() + 60
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
    assert every[int(0.99 * len(every))] <= (MOST_MS if long else FREEZE_MS)
    # In the short run the caches are still filling: each connection to the store keeps a few megabytes.
    assert after <= (1.05 * before + 4 if long else before + 32), "the memory of the server does not grow"
    begin = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begin < 3
    assert not [p for p in psutil.process_iter(["cmdline"]) if os.fspath(server.log) in (p.info["cmdline"] or [])]
