"""PostgreSQL, Redis and an MQTT broker on loopback, started for the tests; where one is absent, the line to run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event

import pytest

_POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@contextmanager
def listening() -> Iterator[int]:
    """A port that is taken."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield int(one.getsockname()[1])


def program(name: str, package: str) -> str:
    """The path of a program; a test that needs it is skipped without it."""
    places = os.pathsep.join([os.environ["PATH"], "/usr/sbin", *map(str, _POSTGRES[-1:])])
    found = shutil.which(name, path=places)
    if found is None:
        line = package if " " in package else f"apt-get install {package}"
        pytest.skip(f"needs {name}: {line}")
    return found


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that another user may enter; those of pytest are closed again by the next pytest that starts."""
    with tempfile.TemporaryDirectory(prefix="etalis-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def as_user(folder: Path) -> list[str]:
    """What stands before a program that refuses to run as root, and may write to the folder then."""
    if os.geteuid():
        return []
    shutil.chown(folder, "postgres")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


@contextmanager
def running(command: Sequence[str], port: int, log: Path) -> Iterator[int]:
    """A server that answers on a port."""
    with log.open("ab") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    end = time.monotonic() + 30
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()[-2000:]
                assert time.monotonic() < end, log.read_text()[-2000:]
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def postgres(folder: Path, port: int = 0) -> Iterator[str]:
    """The address of a database, which is empty at first; ``folder`` is an ``open_folder``."""
    server, init = program("postgres", "postgresql"), program("initdb", "postgresql")
    before, port = as_user(folder), port or free_port()
    if not (folder / "data").exists():
        subprocess.run([*before, init, "-D", str(folder / "data"), "-U", "etalis", "-A", "trust", "--no-sync"],
                       check=True, capture_output=True)  # fmt: skip
    command = [*before, server, "-D", str(folder / "data"), "-p", str(port), "-k", str(folder), "-h", "127.0.0.1"]
    with running(command, port, folder / "log"):
        time.sleep(0.3)
        yield f"postgresql://etalis@127.0.0.1:{port}/postgres"


@contextmanager
def redis(folder: Path, port: int = 0) -> Iterator[str]:
    """A server that keeps what it has confirmed."""
    port = port or free_port()
    command = [program("redis-server", "redis-server"), "--port", str(port), "--dir", str(folder), "--save", "",
               "--appendonly", "yes", "--appendfsync", "always"]  # fmt: skip
    with running(command, port, folder / "log"):
        yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def s3(folder: Path) -> Iterator[str]:
    """The host and port of an S3 server that has no buckets yet."""
    port = free_port()
    with running([program("moto_server", "pip install 'moto[server]'"), "-p", str(port)], port, folder / "log"):
        yield f"127.0.0.1:{port}"


@contextmanager
def mosquitto(folder: Path, port: int, more: str = "") -> Iterator[str]:
    """``more``: further lines of its settings."""
    (folder / "conf").write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\n"
        f"persistence_location {folder}/\nautosave_interval 1\nuser root\nmax_queued_messages 0\n{more}"
    )
    with running([program("mosquitto", "mosquitto"), "-c", str(folder / "conf")], port, folder / "log"):
        yield f"mqtt://127.0.0.1:{port}"


@contextmanager
def between(port: int, cut: Callable[[bytes], bool]) -> Iterator[int]:
    """A way to a server; a connection whose next bytes are to be cut passes them on and breaks, without an answer."""
    front = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client = front.accept()[0]
            except OSError:
                return  # closed
            server = socket.create_connection(("127.0.0.1", port))
            broken = threading.Event()
            threading.Thread(target=_there, args=(client, server, cut, broken), daemon=True).start()
            threading.Thread(target=_back, args=(client, server, broken), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield int(front.getsockname()[1])
    finally:
        front.shutdown(socket.SHUT_RDWR)
        front.close()


def _there(client: socket.socket, server: socket.socket, cut: Callable[[bytes], bool], broken: Event) -> None:
    with suppress(OSError):
        while data := client.recv(1 << 20):
            if cut(data):
                broken.set()
                server.sendall(data)
                time.sleep(0.2)  # the server does what it is asked
                client.shutdown(socket.SHUT_RDWR)
                break
            server.sendall(data)
        server.shutdown(socket.SHUT_RDWR)


def _back(client: socket.socket, server: socket.socket, broken: Event) -> None:
    with suppress(OSError), client, server:
        while data := server.recv(1 << 20):
            if not broken.is_set():
                client.sendall(data)


class Restartable:
    """A service that may be stopped and started again, at the same port and with what it has kept."""

    def __init__(self, service: Callable[[Path, int], AbstractContextManager[str]], folder: Path) -> None:
        self._start = partial(service, folder, free_port())
        self._running = ExitStack()
        self.address = self._running.enter_context(self._start())

    def restart(self) -> None:
        self._running.close()
        self._running.enter_context(self._start())

    def close(self) -> None:
        self._running.close()
