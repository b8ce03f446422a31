"""What compiles the kernels ahead calls them with the types that they are called with later."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
from importlib import import_module
from pathlib import Path

import numba

from benchmarks import windows
from benchmarks.columnar import arrow_columns
from benchmarks.engine import chosen
from etalis_py import Engine, compile
from etalis_py.warm_up import programs
from etalis_py.executors.columns import kernels
from etalis_py.kernel import hashing, match_id_text
from etalis_py.streams.columns import gather_terms, grouping, scanning, time_kernels, turtle

programs.rules()
programs.others()
named = [path.stem for path in Path(kernels.__path__[0]).glob("[a-z]*.py")]
readers = [gather_terms, grouping, scanning, time_kernels, turtle]
modules = [*(import_module(f"{kernels.__name__}.{name}") for name in named), match_id_text, hashing, *readers]
compiled = {
    f"{module.__name__}.{name}": function
    for module in modules
    for name, function in vars(module).items()
    if isinstance(function, numba.core.dispatcher.Dispatcher)
}
ahead = {name: set(function.signatures) for name, function in compiled.items()}
assert ahead

for workload in chosen("W1,W2,W2u,W3,W4,W5,W5t,W7,W8"):
    events = workload.events(300)
    engine = Engine(compile(workload.query), policy=workload.policy, executor="columns")
    for columns in arrow_columns(events):
        list(engine.push_all(columns))
    engine.close()
windows.average(5_000, in_columns=True, runs=1)
windows.maximum(5_000, star=False, in_columns=True, runs=1)
windows.maximum(5_000, star=True, in_columns=True, runs=1)
for name, function in compiled.items():
    for signature in set(function.signatures) - ahead[name]:
        print(name, signature)
"""


def test_nothing_is_left_to_be_compiled() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
