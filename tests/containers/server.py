"""A server in a process of its own, as the tests of this folder start it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.processes import PATIENCE

HERE = Path(__file__).parent
_PROGRAM = """
import json, logging, sys
logging.basicConfig(level="INFO", stream=sys.stderr)
sys.path.insert(0, sys.argv[1])
from etalis_py.containers import Limits, serve
options = json.loads(sys.argv[2])
limits = Limits(**options.pop("limits", {}))
engines = {"fake": "fake_runner:make", "etalis": "etalis_py.cli.server_programs:runner_factory", "": None}
engine = engines[options.pop("engine", "fake")]
revise = options.pop("revise", 0)
if spans := options.pop("spans", None):
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
if engine and engine.startswith("etalis_py"):
    options["runner_options"] = {"background": [], "entailment": "rdfs", "policy": "unrestricted", "revise": revise}
serve(port=options.pop("port", 0), limits=limits, runner_factory=engine, idle=0.1,
      ready=lambda url: print(url, flush=True), **options)
if spans:
    with open(spans, "w") as file:
        json.dump([json.loads(span.to_json()) for span in exporter.get_finished_spans()], file)
"""


class Server:
    """A server in a process of its own."""

    def __init__(self, log: Path, **options: object) -> None:
        self.log, self.options = log, options
        self.start()

    def start(self) -> None:
        arguments = [sys.executable, "-c", _PROGRAM, str(HERE), json.dumps(self.options)]
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, f"the server did not start:\n{self.log.read_text()}"

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                self.kill()

    def errors(self) -> str:
        """What the server wrote about failures."""
        return "\n".join(line for line in self.log.read_text().splitlines() if "Traceback" in line or "ERROR" in line)
