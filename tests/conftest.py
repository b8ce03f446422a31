"""What the whole suite shares: how many random examples are drawn, and from which seed."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from random import randrange
from typing import Any

import pytest

from tests.draws import left_out, load_profile
from tests.spark.java import use

# A run draws the same examples as any other, so that what fails fails for everybody; a nightly run draws fresh ones.
SEED = 4_711


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--few",
        action="store_true",
        help="a quick look: a twelfth of the random examples, a third of the cases of tests with many",
    )
    parser.addoption("--nightly", action="store_true", help="draw 50,000 random programs; run tests marked nightly")
    parser.addoption("--kafka", action="store_true", help="run the tests that need a Kafka broker: see make test-kafka")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--few") and config.getoption("--nightly"):
        raise pytest.UsageError("--few draws few examples and --nightly many: give one of them")
    use()
    load_profile("nightly" if config.getoption("--nightly") else "few" if config.getoption("--few") else "default")
    if config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(randrange(2**32) if config.getoption("--nightly") else SEED)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Read all tests without the garbage collector, which would look at them again and again, and never after that."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        session.config.pluginmanager.register(Failures(reporter))


class Failures:
    """Names a test as soon as it fails; the reasons come at the end of the run."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reporter.ensure_newline()
            self._reporter.write_line(f"{report.nodeid} failed ({report.when})")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Part of pytest-xdist: called in a run with ``-n``."""
    from tests.workers import scheduler

    return scheduler(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.write_line(f"random examples as in this run: --hypothesis-seed={config.option.hypothesis_seed}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("PYTEST_XDIST_WORKER"):
        from tests.workers import longest_first, strays

        if files := strays(items):
            raise pytest.UsageError(f"write spark: SparkSession where a test takes it: {', '.join(files)}")
        longest_first(items)
    if config.getoption("--few"):
        without = left_out([item.nodeid for item in items])
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in without])
        items[:] = [item for item in items if item.nodeid not in without]
    long = pytest.mark.skip(reason="a long setting: run with --nightly")
    kafka = pytest.mark.skip(reason="needs a Kafka broker: run by make test-kafka")
    for item in items:
        if item.get_closest_marker("nightly") is not None and not config.getoption("--nightly"):
            item.add_marker(long)
        if "broker" in getattr(item, "fixturenames", ()) and not config.getoption("--kafka"):
            item.add_marker(kafka)


@pytest.fixture(scope="module")
def still_heap() -> Iterator[None]:
    """Where processor time has a bound: what earlier tests keep alive does not count as work of the collector."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@pytest.fixture
def kept_sources() -> Iterator[None]:
    """Where doctest goes through ``linecache``: the collector takes the sources of generated code out of it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
