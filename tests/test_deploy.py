"""The files for containers fit the command line and the package, where no container can be started."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from etalis_py import compile, read_stream, run
from etalis_py.cli.commands import parser
from etalis_py.cli.sources import is_topic
from etalis_py.connectors.registry import is_sink
from tests.cli import in_process
from tests.durable import services

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


def arguments_of_the_pod() -> list[str]:
    _, deployment = yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text())
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return list(container["args"])


def arguments_of_the_unit() -> list[str]:
    lines = (ROOT / "deploy" / "etalis-run.service").read_text().splitlines()
    [command] = [line for line in lines if line.startswith("ExecStart=")]
    command = command.replace("${SOURCE}", "kafka://h:1/ticks").replace("${SINK}", "postgresql://h/alerts")
    program, *arguments = shlex.split(command.partition("=")[2].replace("%i", "alert"))
    assert program.startswith("/")
    return arguments


@pytest.mark.parametrize(
    "arguments",
    [OURS["alert"]["command"], arguments_of_the_pod(), arguments_of_the_unit()],
    ids=["compose", "pod", "unit"],
)
def test_the_run_keeps_its_state_and_tells_how_it_is_doing(arguments: list[str]) -> None:
    options = parser().parse_args(arguments)
    [source] = options.stream
    assert is_topic(source)
    assert is_sink(options.sink)
    assert ":" not in (urlsplit(options.sink).netloc), "no password"
    assert options.checkpoint is not None
    assert options.metrics


def test_the_pod_has_a_volume_for_its_checkpoints_and_is_alone_there() -> None:
    claim, deployment = yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text())
    spec = deployment["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes.keys()
    assert volumes["state"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    folder = Path(parser().parse_args(container["args"]).checkpoint)
    assert Path(next(m["mountPath"] for m in container["volumeMounts"] if m["name"] == "state")) in folder.parents
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert f"--metrics=0.0.0.0:{ports['metrics']}" in container["args"]
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": "metrics"}


def test_the_query_and_the_mapping_find_a_rise_in_plain_json(tmp_path: Path) -> None:
    ticks = [(0, "acme", 10.0), (20_000, "acme", 12.5), (30_000, "zinc", 9.0)]
    lines = [json.dumps({"at": at, "company": company, "price": price}) for at, company, price in ticks]
    (tmp_path / "ticks.jsonl").write_text("\n".join(lines))
    queries = ROOT / "deploy" / "queries"
    matches = run(queries / "alert.rq", read_stream(tmp_path / "ticks.jsonl", mapping=queries / "ticks.toml"))
    assert [(match["company"], match["low"], match["high"]) for match in matches] == [
        ("http://example.org/acme", 10.0, 12.5)
    ]


def panels() -> list[dict[str, Any]]:
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "alerts.json").read_text())
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    return list(dashboard["panels"])


def test_grafana_is_given_files_that_exist_and_belong_together() -> None:
    grafana = COMPOSE["services"]["grafana"]
    mounted = dict(volume.split(":")[:2] for volume in grafana["volumes"])
    assert all((ROOT / "deploy" / name).is_file() for name in mounted)
    assert all(port.startswith("127.0.0.1:") for port in grafana["ports"])
    [source] = yaml.safe_load((ROOT / "deploy" / "grafana" / "datasources.yaml").read_text())["datasources"]
    [provider] = yaml.safe_load((ROOT / "deploy" / "grafana" / "dashboards.yaml").read_text())["providers"]
    assert Path(mounted["./grafana/alerts.json"]).parent == Path(provider["options"]["path"])
    database = COMPOSE["services"]["postgres"]["environment"]
    assert (source["user"], source["jsonData"]["database"]) == (database["POSTGRES_USER"], database["POSTGRES_DB"])
    assert source["secureJsonData"]["password"].removeprefix("$") in grafana["environment"]
    for panel in panels():
        assert panel["datasource"] == {"type": source["type"], "uid": source["uid"]}
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_the_panels_ask_for_what_the_run_writes(tmp_path: Path) -> None:
    """The statements of the dashboard, with the macros as Grafana writes them, over the alerts of a run."""
    psycopg = pytest.importorskip("psycopg", reason="needs the extra postgresql")
    lines = [(1767225600000 + at, company, price) for at, company, price in [(0, "acme", 10.0), (20_000, "acme", 12.5)]]
    ticks = [json.dumps({"at": at, "company": company, "price": price}) for at, company, price in lines]
    (tmp_path / "ticks.jsonl").write_text("\n".join(ticks))
    queries = ROOT / "deploy" / "queries"
    with services.open_folder() as folder, services.postgres(folder) as address:
        arguments = ["run", str(queries / "alert.rq"), "-s", "ticks.jsonl", "-m", str(queries / "ticks.toml"),
                     "-o", f"{address}?table=alerts"]  # fmt: skip
        done = in_process.run(arguments, tmp_path)
        assert done.returncode == 0, done.stderr
        found = []
        for panel in panels():
            [target] = panel["targets"]
            asked = re.sub(r"\$__timeFilter\(([^)]*)\)", r"\1 BETWEEN '2026-01-01' AND '2026-01-02'", target["rawSql"])
            group = r"floor(extract(epoch from \1)/60)*60"
            asked = re.sub(r"\$__timeGroup\(([^,]*), '1m'\)", group, asked)
            with psycopg.connect(address) as connection:
                found.append(connection.execute(asked).fetchall())
    assert found[0] == [(1,)]
    assert [(metric, count) for _, metric, count in found[1]] == [("acme", 1)]
    assert [row[1:] for row in found[2]] == [("acme", 10.0, 12.5)]


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd-analyze: apt-get install systemd")
    text = (ROOT / "deploy" / "etalis-run.service").read_text()
    unit = tmp_path / "etalis-run@alert.service"
    unit.write_text(text.replace("/opt/etalis/bin/etalis", "/bin/true"))  # a program that is there
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
