"""The wheel holds everything: installed into an empty environment, the command runs from another folder.

The environment is empty of the project; its dependencies are those of the interpreter that runs the tests, added by a
path file, since fetching them again would take minutes.  That they are declared is checked by name.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path

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


@cache
def imported() -> set[str]:
    """The top-level modules that the product imports, at the top of a file or later."""
    found: set[str] = set()
    for room in ("etalis_py", "compiler", "rules"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names - OURS


def unnamed(packages: set[str]) -> list[str]:
    """The imported modules that none of these packages ships; several may ship parts of one module."""
    distributions = packages_distributions()
    shipped_by = {name: {one.lower() for one in distributions[name]} for name in imported() if name in distributions}
    return sorted(name for name, candidates in shipped_by.items() if not candidates & packages)


def test_every_import_is_a_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name != "test" for line in lines]
    declared = {re.split(r"[<>=!\[ ]", line)[0].lower() for line in [*project["dependencies"], *extras]}
    assert not (undeclared := unnamed(declared)), f"not declared: {undeclared}"
    assert version("etalis-py") == project["version"]
