"""The memory that goals may take by default: a share of the machine's, or of the container's if that is less."""

from __future__ import annotations

from pathlib import Path

import pytest

from etalis_py import Limits
from etalis_py.values import memory as module
from etalis_py.values.memory import UNKNOWN, memory


def files(root: Path, **contents: str) -> Path:
    for name, text in contents.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_machine", lambda: iter([1_000]))


def test_the_machine_has_the_memory_that_no_container_limits(tmp_path: Path) -> None:
    assert memory(tmp_path) == 1_000
    group = {"sys__fs__cgroup__memory.max": "max\n", "sys__fs__cgroup__memory.high": "5"}
    assert memory(files(tmp_path, proc__self__cgroup="0::/\n", **group)) == 1_000


def test_a_control_group_limits_what_is_inside_of_it(tmp_path: Path) -> None:
    files(tmp_path, proc__self__cgroup="0::/pod/box\n")
    files(tmp_path, **{"sys__fs__cgroup__pod__memory.max": "300\n", "sys__fs__cgroup__pod__box__memory.max": "max\n"})
    assert memory(tmp_path) == 300


def test_control_groups_of_the_first_version(tmp_path: Path) -> None:
    files(tmp_path, proc__self__cgroup="9:cpu,cpuacct:/a\n5:memory:/docker/x\n")
    files(tmp_path, **{"sys__fs__cgroup__memory__memory.limit_in_bytes": "200\n"})
    assert memory(tmp_path) == 200


def test_a_system_that_does_not_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_machine", lambda: iter([]))
    assert memory(tmp_path) == UNKNOWN


def test_goals_may_take_half() -> None:
    module.default_bytes.cache_clear()
    try:
        assert Limits().bytes == 500
    finally:
        module.default_bytes.cache_clear()
