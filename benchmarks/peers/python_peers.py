"""DuckDB and Polars: the workloads that are a join or a window function over a whole table.

    python -m benchmarks.peers.python_peers duckdb|polars WORKLOAD FILE WARM

Both read a complete table in memory, so there is no warm-up; the clock starts when the table is ready.
Prints events, matches and processor seconds as one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from pyarrow import Table, csv

SPAN = 600_000  # milliseconds of W5t

DUCKDB = {
    "W1r": """SELECT a.subject, a.time AS began, b.time AS ended FROM events a JOIN events b
        ON a.subject = b.subject AND a.time < b.time WHERE a.predicate = 'a' AND b.predicate = 'b'""",
    "W5": "SELECT time, sum(value) OVER (ORDER BY time ROWS BETWEEN 99 PRECEDING AND CURRENT ROW) AS total FROM events",
    "W5t": f"""SELECT time, sum(value) OVER (ORDER BY time RANGE BETWEEN {SPAN - 1} PRECEDING AND CURRENT ROW) AS total
        FROM events""",
}


def by_duckdb(workload: str, events: Table) -> Callable[[], int]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("given", events)
    connection.execute("CREATE TABLE events AS SELECT * FROM given")
    return lambda: connection.execute(DUCKDB[workload]).to_arrow_table().num_rows


def by_polars(workload: str, events: Table) -> Callable[[], int]:
    import polars

    frame = polars.from_arrow(events)
    assert isinstance(frame, polars.DataFrame)
    if workload == "W5":
        return lambda: frame.select("time", polars.col("value").rolling_sum(100, min_samples=1)).height
    rolled = polars.col("value").rolling_sum_by("time", f"{SPAN}i")
    return lambda: frame.select("time", rolled).height


def main(engine: str, workload: str, path: str) -> None:
    names = csv.ReadOptions(column_names=["time", "subject", "predicate", "value"])
    arrow_events = csv.read_csv(path, read_options=names)
    run = {"duckdb": by_duckdb, "polars": by_polars}[engine](workload, arrow_events)
    begun = time.process_time()
    matches = run()
    seconds = time.process_time() - begun
    print(json.dumps({"events": arrow_events.num_rows, "matches": matches, "seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:4])
