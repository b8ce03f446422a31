"""Fresh IRIs through an answer-set program: the process must not grow.

    python -m benchmarks.asp_memory [events, default 500000]

Each event is an alarm of a new sensor in one of fifty rooms; the program says that a room is at risk if the one before
it had two alarms within the last ten seconds.  clingo keeps every symbol it has seen, so a naive mapping of IRIs to
symbols would grow by about 100 bytes an event.  Resident memory is printed after each tenth of the run, which fails if
it grows by more than 6 MB after the first fifth.
"""

from __future__ import annotations

import sys
from time import perf_counter

import psutil

from etalis_py.knowledge import Graph
from etalis_py.knowledge.asp import LiveProgram, parse_program

PROGRAM = """
%! prefix : <http://example.org/>
%! reads next(R, S) from R :nextTo S
%! event alarm(A, R) from A :alarmIn R within PT10S over slot(A), room(R)
%! slots 12
%! offers risk(R) as R a :AtRisk
room(R) :- next(R,_).
room(R) :- next(_,R).
double(R) :- alarm(A,R), alarm(B,R), A < B.
risk(S) :- double(R), next(R,S).
"""
EX = "http://example.org/"
ROOMS = 50
SECOND = 1_000_000
ALLOWED = 6 * 2**20


def main(events: int) -> int:
    rooms = [f"<{EX}room{n}>" for n in range(ROOMS)]
    graph = Graph((rooms[n], f"<{EX}nextTo>", rooms[(n + 1) % ROOMS]) for n in range(ROOMS))
    live = LiveProgram(parse_program(PROGRAM, "alarms"), graph)
    process = psutil.Process()
    warm = offered = 0
    start = perf_counter()
    for n in range(events):
        room = rooms[n * n // 7 % ROOMS]
        outcome = live.step(n * SECOND, [(f"<{EX}sensor{n}>", f"<{EX}alarmIn>", room)])
        offered += len(outcome.triples)
        if (n + 1) % (events // 10) == 0:
            size = process.memory_info().rss
            if n + 1 == events // 10 * 2:
                warm = size
            rate = (n + 1) / (perf_counter() - start)
            print(f"{n + 1:9,} events   {size / 2**20:7.1f} MB   {rate:8,.0f} events/s   {offered:,} triples offered")
    grown = process.memory_info().rss - warm
    print(f"grown by {grown / 2**10:,.0f} kB after the first fifth")
    return int(grown > ALLOWED or not offered)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500_000))
