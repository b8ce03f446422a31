"""What is not used is not imported: starting is fast, and a query without knowledge loads neither rdflib nor clingo.

Modules are counted, not milliseconds: a test of the clock fails on a busy machine.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

import etalis_py
from etalis_py import knowledge, spark, streams

HEAVY = {"pyspark", "pandas", "pyarrow", "numba", "matplotlib", "rdflib", "clingo", "httpx", "starlette", "uvicorn"}

AT_WORK = """
import etalis_py
engine = etalis_py.Engine(etalis_py.compile("SELECT * { { ?a <urn:p> ?b } SEQ { ?b <urn:q> ?c } }"))
engine.push(etalis_py.event("<urn:a> <urn:p> <urn:b>", 1))
engine.push(etalis_py.event("<urn:b> <urn:q> <urn:c>", 2))
assert len(engine.close()) == 1
"""
HELP = """
from etalis_py.cli.main import main
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(["--help"])
"""


def loaded_by(code: str) -> set[str]:
    """The modules that are there after the code has run in a process of its own."""
    script = code + "\nimport sys; print(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


@pytest.mark.parametrize(
    ("code", "most"), [("import etalis_py", 40), (HELP, 150), (AT_WORK, 500)], ids=["import", "help", "at work"]
)
def test_what_is_loaded(code: str, most: int) -> None:
    """``most`` is a generous bound on the modules beyond those of a bare interpreter."""
    modules = loaded_by(code)
    assert not modules & HEAVY
    assert len(modules - loaded_by("")) <= most


def test_what_spark_asks_for_states_loads_no_engine() -> None:
    """It starts an interpreter for that at each level of each stream."""
    unused = {"pandas", "pyarrow", "etalis_compiler", "etalis_py.engine.engine"}
    assert not loaded_by("import etalis_py.spark.shard.deferred") & unused


@pytest.mark.parametrize("package", [etalis_py, knowledge, spark, streams], ids=lambda package: package.__name__)
def test_what_a_package_offers_is_there_when_asked_for(package: object) -> None:
    assert set(package.__all__) <= set(dir(package))  # type: ignore[attr-defined]
    assert all(getattr(package, name) is not None for name in package.__all__)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing  # type: ignore[attr-defined]  # noqa: B018
