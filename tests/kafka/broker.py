"""A real Kafka broker (KRaft, one node) in a JVM of its own, as the tests start it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.artifacts import KAFKA
from tests.processes import PATIENCE
from tests.spark.conftest import java

PARTITIONS = 3
_JAVA = ("java", "-Xmx384m", "-cp")
_SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
num.partitions={partitions}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


class Broker:
    """A running broker; ``servers`` is its address.  Topics are made when somebody writes to them."""

    def __init__(self, folder: Path) -> None:
        ports = _free_ports(2)
        self.servers = f"127.0.0.1:{ports[0]}"
        settings = folder / "server.properties"
        text = _SETTINGS.format(port=ports[0], controller=ports[1], folder=folder, partitions=PARTITIONS)
        settings.write_text(text)
        self._folder, self._port = folder, ports[0]
        identity = "AAAAAAAAAAAAAAAAAAAAAQ"  # of the cluster: 16 bytes
        subprocess.run(
            [*_JAVA, _classes(), "kafka.tools.StorageTool", "format", "-t", identity, "-c", str(settings)],
            check=True,
            capture_output=True,
        )
        self.start()

    def start(self) -> None:
        """Start it, with what it has kept."""
        settings, log_file = self._folder / "server.properties", self._folder / "broker.log"
        with log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [*_JAVA, _classes(), "kafka.Kafka", str(settings)], stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + PATIENCE
        while not _answers(self._port):
            said = log_file.read_text()[-2000:]
            assert self.process.poll() is None, f"the broker ended:\n{said}"
            assert time.monotonic() < until, f"the broker does not come up:\n{said}"
            time.sleep(0.2)

    def restart(self) -> None:
        self.stop()
        self.start()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _classes() -> str:
    return os.pathsep.join(map(str, KAFKA.jars("broker")))


def _free_ports(count: int) -> list[int]:
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in opened]
    for one in opened:
        one.close()
    return ports


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if reason := KAFKA.missing():
        pytest.skip(reason)
    if java() < 17:
        pytest.skip("Kafka needs Java 17 or newer, and there is none")
    started = Broker(tmp_path_factory.mktemp("kafka"))
    yield started
    started.stop()
