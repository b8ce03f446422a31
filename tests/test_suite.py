"""The suite about itself: how much is drawn at random, and what the two commands do before anything else."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

from tests import draws, fresh, kernels_cache, mutants, types_cache, workers
from tests.engine import test_oracle

ROOT = Path(__file__).parents[1]


def test_the_engine_meets_the_oracle_often_enough() -> None:
    """At least 2,000 random programs in a run, 50,000 in a nightly one."""
    tests = [t for name, t in vars(test_oracle).items() if name.startswith("test_") and is_hypothesis_test(t)]
    assert len(tests) * draws.DEFAULT >= 2_000
    assert len(tests) * draws.NIGHTLY >= 50_000


def test_ci_runs_the_command_of_the_readme_and_nothing_else() -> None:
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    assert script == ["#!/bin/sh", 'cd "$(dirname "$0")/.." && exec make test']
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert re.search(r"^make test\b", (ROOT / "README.md").read_text(), re.MULTILINE)


def test_drawn_tests_take_a_share_of_what_the_run_draws() -> None:
    """Else a quick run would not be quick, and a nightly one no wider."""
    # One counts what it draws, and one tests drawing; those of Spark draw a few programs.
    fixed = re.compile(r"max_examples=(\d+)\b(?! \*)|\.(max_examples)\b")
    counted = {"test_share.py": ["40"], "test_draws.py": ["400"]}
    for file, text in texts_of_tests():
        numbers = [number or name for number, name in fixed.findall(text)]
        assert [n for n in numbers if n not in ("1", "3")] == counted.get(file.name, []), file


def test_no_test_fails_because_the_machine_is_busy() -> None:
    """What takes long is bounded in processor time; what may not come is waited for, for minutes (``PATIENCE``)."""
    bounded = re.compile(r"assert .*time\.(?:monotonic|perf_counter|time)\(\).* <=? [\d.]+$", re.MULTILINE)
    for file, text in texts_of_tests():
        assert not bounded.findall(text), file


def texts_of_tests() -> Iterator[tuple[Path, str]]:
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        yield file, file.read_text(encoding="utf-8")


def test_a_run_on_workers_shares_out_whole_files_and_two_sessions_of_spark() -> None:
    assert workers.group_of("tests/cli/test_spark.py") == workers.group_of("tests/test_packaging.py")
    assert {workers.group_of("tests/spark/test_batch.py"), workers.group_of("tests/cli/test_spark.py")} <= {
        *workers.SESSIONS
    }
    assert workers.group_of("tests/spark/test_parts.py") == "tests/spark/test_parts.py"
    assert workers.group_of("tests/test_docs.py") == "tests/test_docs.py"


def test_the_two_sessions_of_spark_have_about_as_much_to_do() -> None:
    lengths = dict.fromkeys(workers.SESSIONS, 0)
    for file, group in workers.sessions().items():
        lengths[group] += (ROOT / file).stat().st_size
    assert max(lengths.values()) < 1.2 * min(lengths.values())


def test_a_quick_look_leaves_out_what_exists() -> None:
    """A file that was renamed would be run again."""
    printed = subprocess.run(
        ["make", "--dry-run", "check"], cwd=ROOT, env=outside_make(), capture_output=True, text=True, check=True
    ).stdout
    left_out = re.findall(r"--ignore=(\S+)", printed)
    assert len(left_out) > 20
    assert [name for name in left_out if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("version", ["", "1.8.0_412", "11.0.2"])
def test_a_missing_or_old_java_is_said_in_one_line_before_anything_else(tmp_path: Path, version: str) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    if version:
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
    environment = {**outside_make(), "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(["make", "test"], cwd=ROOT, env=environment, capture_output=True, text=True)
    first = done.stderr.splitlines()[0]
    assert done.returncode != 0
    assert done.stdout == ""
    assert first.startswith(
        f"Spark needs Java 17 or newer, found {version.split('.')[0] or 'none'}: install the package"
    )


def outside_make() -> dict[str, str]:
    """The environment, as if the suite had not been started by make, which tells its children so."""
    return {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}


def test_a_counter_example_is_written_down_as_a_test() -> None:
    """It imports what the example is made of."""
    report = """\
____________________ test_the_engine_is_sound ____________________
E   AssertionError: assert [] == [1]
E   Failing test case: test_the_engine_is_sound(
E       case=Event(start=0, end=1),
E       size=2,  # or any other generated value
E   )
"""
    found = fresh.in_python("test_the_engine_is_sound", "tests.engine.test_oracle", report)
    assert found is not None
    imports, expression = found
    assert imports == [
        "from hypothesis import Phase, example, settings",
        "from etalis_py.events.item import Event",
    ]
    assert "case=Event(start=0, end=1)" in expression
    assert expression.endswith("(test_the_engine_is_sound))")
    compile(expression, "the test", "eval")


def test_an_example_that_is_not_printed_as_python_is_kept_as_hypothesis_encodes_it() -> None:
    report = """\
E   Failing test case: test_it(
E       case=<an object at 0x1>,
E   )
E   You can reproduce this test case by temporarily adding @reproduce_failure('6.1', b'AX') as a decorator on your test
"""
    assert fresh.in_python("test_it", "tests.test_suite", report) == (
        ["from hypothesis import reproduce_failure"],
        "reproduce_failure('6.1', b'AX')(test_it)",
    )


def test_one_operator_of_a_module_is_changed_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        "def f(a: int | None, b: int) -> bool | None:\n    return a is None or not b != 0\n"
    )
    places = mutants.places(Path("module.py"), tmp_path)
    changes = [(made.line, made.after) for made in (mutants.mutant_of(place, tmp_path) for place in places)]
    assert changes == [
        (2, "a is None and (not b != 0)"),
        (2, "a is not None"),
        (2, "not not b != 0"),
        (2, "b == 0"),
        (2, "1"),
    ]


def test_a_fresh_checkout_begins_with_loops_that_were_compiled_in_another(tmp_path: Path) -> None:
    one, other, kept = tmp_path / "one", tmp_path / "other", tmp_path / "kernels.tar"
    for root in (one, other):
        (root / "__pycache__").mkdir(parents=True)
        (root / "loops.py").write_text("")
    machine_code = "__pycache__/loops.sum-4.py311.nbi"
    kernels_cache.keep(one, [one / "loops.py"], kept)
    assert not kernels_cache.begin(other, kept), "nothing is compiled yet"
    (one / machine_code).write_bytes(b"code")
    (one / "__pycache__" / "loops.cpython-311.pyc").write_bytes(b"of Python")
    kernels_cache.keep(one, [one / "loops.py"], kept)
    assert kernels_cache.begin(other, kept)
    assert [str(path.relative_to(other)) for path in (other / "__pycache__").iterdir()] == [machine_code]
    assert (other / machine_code).read_bytes() == b"code"


def test_machine_code_goes_by_all_sources(tmp_path: Path) -> None:
    sources = [tmp_path / "a.py", tmp_path / "b.py"]
    for source in sources:
        source.write_text("x = 1")
    before = kernels_cache.key(sources)
    sources[0].touch()
    assert kernels_cache.key(sources) == before
    sources[1].write_text("x = 2")
    assert kernels_cache.key(sources) != before


def test_a_fresh_checkout_begins_with_what_mypy_knew_in_another(tmp_path: Path) -> None:
    kept, own, other = tmp_path / "cache" / "mypy.tar", tmp_path / "own", tmp_path / "other"
    assert types_cache.begin(own, kept)
    assert not own.exists(), "nothing is kept yet"
    own.mkdir()
    (own / "types.db").write_bytes(b"known")
    types_cache.keep(own, kept)
    assert types_cache.begin(other, kept)
    assert (other / "types.db").read_bytes() == b"known"
    (other / "types.db").write_bytes(b"more")
    assert not types_cache.begin(other, kept), "it has its own"
    types_cache.keep(other, kept)
    assert types_cache.begin(tmp_path / "third", kept)
    assert (tmp_path / "third" / "types.db").read_bytes() == b"more"
    assert sorted(path.name for path in kept.parent.iterdir()) == ["mypy.tar"]
