"""The wheel holds everything: installed into an empty environment, the command runs from another folder.

The environment is empty of the project; its dependencies are those of the interpreter that runs the tests, added by a
path file, since fetching them again would take minutes.  That they are declared is checked by name.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import pyspark.sql.streaming
import pytest

ROOT = Path(__file__).parents[1]
OURS = {"etalis_py", "etalis_compiler", "etalis_rules"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_the_three_packages_their_data_and_no_others(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == OURS
    for package in OURS:
        assert f"{package}/py.typed" in names
    for needed in (
        "etalis_compiler/grammar.lark",
        "etalis_rules/lp/rdfs.lp",
        "etalis_rules/programs/stock/drop_and_rise.rq",
        "etalis_rules/data/stock/sectors.ttl",
        "etalis_py/containers/page/index.html",
        "etalis_py/docs/index.md",
    ):
        assert needed in names
    sources = [p for room in ("etalis_py", "compiler", "rules") for p in (ROOT / room).rglob("*.py")]
    assert len([name for name in names if name.endswith(".py")]) == len(sources)


def test_the_installed_command_runs_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "empty"
    venv.EnvBuilder(with_pip=False).create(environment)
    python = environment / "bin" / "python"
    site = next((environment / "lib").glob("python*/site-packages"))
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    done = subprocess.run([*install, str(wheel)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # The dependencies, without the editable installation of this checkout: that is a path file, not read from here.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    asked = "import etalis_py, etalis_rules; print(etalis_py.__file__); print(etalis_rules.__path__[0])"
    told = subprocess.run([str(python), "-c", asked], cwd=elsewhere, capture_output=True, text=True, check=True)
    where = told.stdout.split()
    assert where == [str(site / "etalis_py" / "__init__.py"), str(site / "etalis_rules")]
    shipped = site / "etalis_rules" / "programs" / "stock" / "drop_and_rise.rq"
    command = [str(environment / "bin" / "etalis"), "explain", str(shipped)]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "query drop_and_rise" in done.stdout
    etalis = str(environment / "bin" / "etalis")
    subprocess.run([etalis, "init", "prices"], cwd=elsewhere, capture_output=True, check=True)
    first = [etalis, *["run", "rising.rq", "-s", "ticks.csv", "-m", "mapping.toml", "-f", "csv"]]
    done = subprocess.run(first, cwd=elsewhere / "prices", capture_output=True, text=True)
    assert "http://example.org/acme,10,12,1,3" in done.stdout, done.stderr


def imports_of(folder: Path) -> set[str]:
    """The top-level modules that the files of a folder import, at the top of a file or later."""
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names


def project() -> dict[str, Any]:
    whole: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return whole


def required(*without: str) -> list[str]:
    """What the project requires with all extras but these, apart from itself with an extra."""
    extras = [
        line for name, lines in project()["optional-dependencies"].items() if name not in without for line in lines
    ]
    return [line for line in [*project()["dependencies"], *extras] if not line.startswith("etalis-py")]


@cache
def imported() -> set[str]:
    """The modules that the product imports."""
    return set().union(*(imports_of(ROOT / room) for room in ("etalis_py", "compiler", "rules"))) - OURS


def unnamed(packages: set[str], modules: set[str] | None = None) -> list[str]:
    """The imported modules that none of these packages ships; several may ship parts of one module."""
    distributions = packages_distributions()
    modules = imported() if modules is None else modules
    shipped_by = {name: {one.lower() for one in distributions[name]} for name in modules if name in distributions}
    return sorted(name for name, candidates in shipped_by.items() if not candidates & packages)


def names(lines: Iterable[str]) -> set[str]:
    """The packages that these requirements name."""
    return {re.split(r"[<>=!\[ ]", line)[0].lower() for line in lines}


def test_every_import_is_a_declared_dependency() -> None:
    assert not (undeclared := unnamed(names(required("test")))), f"not declared: {undeclared}"
    assert version("etalis-py") == project()["version"]


def test_all_has_every_extra_but_the_tools() -> None:
    """And the tests have all of them: they are what make installs."""
    extras = project()["optional-dependencies"]
    named = [name for line in extras["all"] for name in re.split(r"[\[\],]", line)[1:-1]]
    assert len(named) == len({*named})
    assert {*named} == set(extras) - {"all", "docs", "notebook", "release", "test"}
    assert "etalis-py[all]" in extras["test"]


def test_a_library_that_only_an_extra_brings_is_named_where_it_is_missing() -> None:
    """Those with a message of their own are tested with what they connect to."""
    from etalis_py.extras import extra_of

    extras = project()["optional-dependencies"]
    own = {"connect", "polars", "jelly", "editor", "kafka", "mqtt", "postgresql", "redis", "otel"}
    own |= {"avro", "delta", "iceberg"}
    brought = {
        name: names(extras[name]) for name in extras if name not in own | {"all", "docs", "notebook", "release", "test"}
    }
    modules = imported() - {name for name in imported() if not unnamed(names(project()["dependencies"]), {name})}
    for module in modules:
        packages = {one.lower() for one in packages_distributions().get(module, ())}
        extra = extra_of(module)
        if any(packages & brings for brings in brought.values()):
            assert packages & brought[extra], f"{module}: etalis_py/extras.py says {extra!r}"


def test_every_dependency_has_a_least_and_a_first_version_that_is_not_known_to_work() -> None:
    """A new major version of a library must not reach those who install without a lock file."""
    open_ended = [line for line in required("test") if ">=" not in line or ",<" not in line]
    assert open_ended == []


def test_versions_of_the_servers_libraries_with_known_faults_are_not_installed() -> None:
    """CVE-2025-62727 (Range headers) is in Starlette up to 0.49.0, CVE-2026-48710 (Host headers) up to 1.0.0,
    CVE-2025-43859 (chunked bodies) in h11 up to 0.15."""
    from packaging.requirements import Requirement

    wanted = {one.name: one.specifier for one in map(Requirement, project()["optional-dependencies"]["server"])}
    for name, bad in {"starlette": ["0.49.0", "1.0.0"], "h11": ["0.15.0"], "uvicorn": ["0.34.3"]}.items():
        assert not any(one in wanted[name] for one in bad), name
        assert version(name) in wanted[name]


def test_what_the_streams_of_pyspark_import_is_a_dependency() -> None:
    """PySpark leaves it to its extras."""
    modules = imports_of(Path(pyspark.sql.streaming.__file__).parent)
    assert "google" in modules
    assert not (
        undeclared := unnamed(
            names([*project()["dependencies"], *project()["optional-dependencies"]["spark"]]), modules
        )
    ), f"not declared: {undeclared}"


# --- an environment with nothing but the wheel ------------------------------------------------------------------------

PAIR = "SELECT ?x ?y WHERE { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x)"
MEAN = """SELECT ?c (AVG(?x) AS ?m) FROM NAMED WINDOW :w ON :ticks [RANGE PT5S STEP PT5S]
WHERE { WINDOW :w { ?c :price ?x } } GROUP BY ?c"""
ON_SPARK = """
import sys
from etalis_py import event
from etalis_py.spark import end_of_stream, events_from_events, events_from_jsonl, matches, session

spark = session("local[1]", shards=1)
ticks = [event(f":acme :price {x}", t, stream="<http://example.org/ticks>") for t, x in ((1, 10), (3, 12), (12, 1))]
if sys.argv[1] == "stream":
    lines = events_from_jsonl(spark.readStream.text("lines"))
    query = matches(sys.argv[2], lines).writeStream.format("memory").queryName("found")
    query.option("checkpointLocation", "checkpoint").trigger(availableNow=True).start().awaitTermination()
    found = spark.table("found")
else:
    found = matches(sys.argv[2], events_from_events(spark, ticks))
print(found.where("kind = 'match'").count())
spark.stop()
"""
WITHOUT = {
    "editor": (["-m", "etalis_py.cli.main", "lsp"], "pip install 'etalis-py[editor]'"),
    "jelly": (["-m", "etalis_py.cli.main", "run", "pair.rq", "-s", "ticks.jelly"], "pip install 'etalis-py[jelly]'"),
    "kafka": (
        ["-m", "etalis_py.cli.main", "run", "pair.rq", "-s", "kafka://localhost:9/ticks"],
        "pip install 'etalis-py[kafka]'",
    ),
    **{
        extra: (["-m", "etalis_py.cli.main", "run", "pair.rq", *option], f"pip install 'etalis-py[{extra}]'")
        for extra, option in {
            "mqtt": ("-s", "mqtt://localhost:9/ticks"),
            "postgresql": ("-s", "ticks.jsonl", "-o", "postgresql://localhost:9/x"),
            "redis": ("-s", "redis://localhost:9/0?stream=ticks"),
        }.items()
    },
    "polars": (
        ["-c", "import etalis_py as e; e.run('SELECT ?x { ?x ?p ?y }', [e.event(':a :p 1', 1)]).collect().to_polars()"],
        "pip install 'etalis-py[polars]'",
    ),
}


@pytest.mark.nightly
def test_a_clean_installation_does_what_needs_no_extra_and_names_the_extra_for_the_rest(
    wheel: Path, tmp_path: Path
) -> None:
    """Fetches all dependencies: minutes."""
    environment, folder = tmp_path / "clean", tmp_path / "work"
    venv.EnvBuilder(with_pip=True).create(environment)
    python = str(environment / "bin" / "python")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def said(*command: str, code: int = 0) -> str:
        done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=900)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    (folder / "lines").mkdir(parents=True)
    said(python, "-m", "pip", "install", "--quiet", str(wheel))
    megabytes = int(said("du", "-sm", str(environment)).split()[0])
    assert megabytes < 450
    (folder / "pair.rq").write_text(PAIR)
    (folder / "mean.rq").write_text(MEAN)
    ticks = ((1, 10), (3, 12), (12, 1))
    lines = [f'{{"t": {t}, "triples": "@prefix : <http://example.org/> . :acme :price {x} ."}}\n' for t, x in ticks]
    for name in ("ticks.jsonl", "lines/ticks.jsonl"):
        (folder / name).write_text("".join(lines).replace('"t"', '"time"'))
    (folder / "on_spark.py").write_text(ON_SPARK)
    etalis = str(environment / "bin" / "etalis")
    assert said(etalis, "run", "pair.rq", "-s", "ticks.jsonl").count('"query"') == 1
    assert said(etalis, "run", "mean.rq", "-s", "ticks=ticks.jsonl").count('"query"') == 2
    said(python, "-m", "pip", "install", "--quiet", f"{wheel}[spark,server,columns]")
    assert said(etalis, "run", "pair.rq", "-s", "ticks.jsonl", "--engine", "spark").count('"query"') == 1
    assert said(python, "on_spark.py", "batch", PAIR).split()[-1] == "1"
    assert said(python, "on_spark.py", "batch", MEAN).split()[-1] == "2"
    assert int(said(python, "on_spark.py", "stream", PAIR).split()[-1]) == 1
    server = subprocess.Popen([etalis, "serve", "--port", "0", "--memory"], cwd=folder, env=clean, stdout=-1, text=True)
    assert server.stdout is not None
    address = server.stdout.readline().split()[1]
    said(etalis, "run", "pair.rq", "-s", "ticks.jsonl", "--sink", f"{address}pairs/")
    server.send_signal(signal.SIGINT)
    assert server.wait(30) == 0
    (folder / "ticks.jelly").write_bytes(b"")
    for command, advice in WITHOUT.values():
        done = subprocess.run([python, *command], cwd=folder, env=clean, capture_output=True, text=True, timeout=60)
        assert done.returncode != 0
        assert advice in done.stderr


@pytest.mark.nightly
def test_the_pages_run_from_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    """The commands and snippets of all pages, where none of the sources can be imported.  Fetches all dependencies."""
    environment, folder = tmp_path / "installed", tmp_path / "pages"
    venv.EnvBuilder(with_pip=True).create(environment)
    python = str(environment / "bin" / "python")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for name in ("tests", "docs", "benchmarks", "examples", "deploy"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml", "mkdocs.yml"):
        shutil.copy(ROOT / name, folder)
    pages = ["tests/test_docs.py", "tests/windows/test_docs.py", "-k", "commands or python or snippets or traced"]
    for command in (["-m", "pip", "install", "--quiet", f"{wheel}[test]"], ["-m", "pytest", "-q", *pages]):
        done = subprocess.run([python, *command], cwd=folder, env=clean, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stdout + done.stderr
