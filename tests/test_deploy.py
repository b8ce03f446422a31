"""The files for containers fit the command line and the package, where no container can be started."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from etalis_py import compile
from etalis_py.cli.main import parser

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
OURS = {name: service for name, service in COMPOSE["services"].items() if "build" in service}


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def test_the_image_is_built_from_instructions_that_exist() -> None:
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert {word for word, _ in instructions()} <= known
    assert instructions()[0][0] == "FROM"


def test_the_image_installs_extras_that_the_package_has() -> None:
    [extras] = re.findall(r"\.\[([a-z,]+)\]", DOCKERFILE.read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()


def test_the_image_runs_as_a_user_without_privileges() -> None:
    users = [rest for word, rest in instructions() if word == "USER"]
    assert users
    assert users[-1] != "root"


@pytest.mark.parametrize("name", OURS)
def test_each_service_is_a_valid_command(name: str) -> None:
    command = OURS[name]["command"]
    options = parser().parse_args(command if isinstance(command, list) else shlex.split(command))
    assert callable(options.command)
    assert (ROOT / OURS[name]["build"]["dockerfile"]).is_file()


def test_services_depend_on_services_that_exist() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        assert set(service.get("depends_on", {})) <= services.keys()
        named = {volume.split(":")[0] for volume in service.get("volumes", ()) if not volume.startswith(".")}
        assert named <= COMPOSE["volumes"].keys()


def test_the_server_asks_for_a_token_and_listens_on_this_machine_only() -> None:
    server = COMPOSE["services"]["server"]
    assert server["environment"]["ETALIS_TOKEN"].startswith("${ETALIS_TOKEN:?")
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])


def test_the_query_compiles() -> None:
    assert compile(ROOT / "deploy" / "queries" / "alert.rq").queries == ("alert",)
