"""Without the libraries of the extras the core does its work, and what needs one says which line installs it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from etalis_py.extras import MissingExtra, extra_of, named

ABSENT = """
import sys
from importlib.machinery import PathFinder

ABSENT = {"pyspark", "py4j", "google", "pandas", "numba", "starlette", "uvicorn", "h11", "websockets", "matplotlib"}


class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in ABSENT else PathFinder.find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""
PAIR = "SELECT ?x ?y { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x) }"
MEAN = "SELECT (AVG(?x) AS ?m) FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT5S] { WINDOW :w { ?c :price ?x } }"
DATA = "time,company,price\n1,acme,10\n3,acme,12\n12,acme,1\n"
ONE = "import etalis_py as e; m = e.run('SELECT ?x { :a :p ?x }', [e.event(':a :p 1', 1)]).collect(); "


def said(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What a command says in an environment without the extras."""
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(ABSENT)
    (folder / "pair.rq").write_text(PAIR)
    (folder / "mean.rq").write_text(MEAN)
    (folder / "s.csv").write_text(DATA)
    path = os.pathsep.join((str(folder / "site"), *sys.path[1:]))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)


def etalis(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return said(folder, "-m", "etalis_py.cli.main", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "pair.rq", "-s", "s.csv"),
        ("run", "pair.rq", "-s", "s.csv", "--checkpoint", "ck", "-o", "out.jsonl"),
        ("run", "mean.rq", "-s", "s=s.csv", "-o", "out.parquet", "-f", "parquet"),
        ("explain", "pair.rq"),
        ("checkpoint", "ck"),
    ],
    ids=["run", "checkpoint", "windows and Parquet", "explain", "describe"],
)
def test_the_core_needs_no_extra(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    if arguments[0] == "checkpoint":
        done = etalis(tmp_path, "run", "pair.rq", "-s", "s.csv", "--checkpoint", "ck", "-o", "out.jsonl")
        assert done.returncode == 0, done.stderr
    done = etalis(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    assert "pip install" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("run", "pair.rq", "-s", "s.csv", "--engine", "spark"), "spark"),
        (("run", "pair.rq", "-s", "s.csv", "--timeline", "t.svg"), "plot"),
        (("replay", "stock", "--plot", "p.png"), "plot"),
        (("serve", "--memory", "--port", "0"), "server"),
    ],
    ids=["Spark", "a timeline", "a replay", "the server"],
)
def test_the_command_line_names_the_extra(tmp_path: Path, arguments: tuple[str, ...], extra: str) -> None:
    done = etalis(tmp_path, *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"which is not installed: pip install 'etalis-py[{extra}]'" in done.stderr
    assert "etalis_py." not in done.stderr, "a name for programmers"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("from etalis_py.spark import matches", "spark"),
        ("import etalis_py.spark as s; s.session()", "spark"),
        ("from etalis_py.containers import serve", "server"),
        (ONE + "m.to_pandas()", "pandas"),
    ],
)
def test_python_names_the_extra(tmp_path: Path, code: str, extra: str) -> None:
    done = said(tmp_path, "-c", code)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"which is not installed: pip install 'etalis-py[{extra}]'")


def test_a_client_of_containers_needs_no_server(tmp_path: Path) -> None:
    done = said(tmp_path, "-c", "from etalis_py.containers import ContainerSink, follow; " + ONE + "m.to_arrow()")
    assert done.returncode == 0, done.stderr


def test_an_error_of_something_else_stays_as_it_is() -> None:
    error = ModuleNotFoundError("No module named 'nonsense'", name="nonsense")
    assert named(error) is error
    assert extra_of(None) == ""
    missing = named(ModuleNotFoundError("…", name="pandas.core"), "to_pandas")
    assert isinstance(missing, MissingExtra)
    assert str(missing) == "to_pandas needs the package pandas, which is not installed: pip install 'etalis-py[pandas]'"
    assert named(missing) is missing


def test_a_library_that_is_too_old_is_named_with_the_version_that_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", {"pyspark": "3.5.9"}.__getitem__)
    missing = named(ModuleNotFoundError("…", name="pyspark.sql.datasource"), "etalis_py.spark.matches")
    assert str(missing) == (
        "etalis_py.spark.matches needs pyspark 4.0 or newer: 3.5.9 is installed, without pyspark.sql.datasource: "
        "pip install 'etalis-py[spark]'"
    )
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert "pyspark>=4.0,<4.4" in project["optional-dependencies"]["spark"]
