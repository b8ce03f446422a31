"""Runs several command lines, one after the other, in one process: Spark's JVM starts once for all of them.

The first stops its session, as a command does at its end; the others share one, and with it its Python workers.
Standard input has a JSON list of lists of arguments; for each, standard output gets ``[exit code, output, errors]``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from unittest import mock

from pyspark.sql import SparkSession

from etalis_py.cli.main import main


def run(arguments: list[str]) -> tuple[int, str, str]:
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        os.dup2(out.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        try:
            code = main(arguments)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
        said = []
        for file in (out, errors):
            file.seek(0)
            said.append(file.read().decode())
    return code, said[0], said[1]


if __name__ == "__main__":
    first, *others = json.load(sys.stdin)
    results = [run(first)]
    with mock.patch.object(SparkSession, "stop"):
        results += [run(arguments) for arguments in others]
    print(json.dumps(results))
