"""A Java for the tests of Spark, which starts with Spark's classes in an archive: ``python -m tests.spark.java``.

A JVM of Spark reads and verifies ten thousand classes, which takes four seconds of processor time or more, and the
suite starts dozens of them.  From an archive they come ready to use (class-data sharing, a feature of Java).  A JVM
writes the archive at its end, from the classes that it has loaded, so one runs a batch and a stream.

Processes find this Java by JAVA_HOME, as Spark does.  It is made once, and anew when Java or PySpark has changed.
"""

from __future__ import annotations

import os
import shutil
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

HOME = Path(__file__).parents[2] / "out" / "java"

# The JVM's better compiler, and a collector with threads of its own, cost more than they gain in a short run.  Without
# that compiler the JVM reserves little memory for machine code, and spends a twelfth of its time on making room there.
# It would also begin with little memory for new objects, and collect garbage five times a second; and with little for
# classes: it would look through all of its memory each time that it needs more, a third of its time for garbage.
SHORT_RUNS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -XX:-UseCodeCacheFlushing -Xmn256m "
    "-XX:MetaspaceSize=512m"
)


def use(home: Path = HOME) -> None:
    """Let the processes that start from now on find this Java, if it has been made for what is installed."""
    if os.environ.get("JAVA_HOME") != str(home) and _is_made(home):
        os.environ["JAVA_HOME"] = str(home)


def make(home: Path = HOME) -> None:
    """Write the command, and the archive by a JVM that runs a batch and a stream."""
    if _is_made(home) or not _system_java():
        return
    shutil.rmtree(home, ignore_errors=True)
    ready = command(f"-XX:SharedArchiveFile={home}/classes.jsa")
    _write(home, command(f"-XX:ArchiveClassesAtExit={home}/classes.jsa"))
    os.environ["JAVA_HOME"] = str(home)
    _run_a_batch_and_a_stream()
    _write(home, ready)


def command(option: str) -> str:
    """The script that starts Java.  Where the archive does not fit, Java goes on without it, and without a word."""
    java = _system_java()
    made_for = f"{os.stat(java).st_mtime_ns}, PySpark {version('pyspark')}" if java else "none"
    quiet = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:disable -Xlog:all=error:stderr"
    return f'#!/bin/sh\n# for Java of {made_for}\nexec "{java}" {option} {quiet} {SHORT_RUNS} "$@"\n'


def _system_java() -> str:
    """The Java that is installed, with all links followed; empty where there is none."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    return os.path.realpath(found) if found and os.path.exists(found) else ""


def _is_made(home: Path) -> bool:
    java = home / "bin" / "java"
    return java.is_file() and java.read_text(encoding="utf-8") == command(f"-XX:SharedArchiveFile={home}/classes.jsa")


def _write(home: Path, text: str) -> None:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(text, encoding="utf-8")
    java.chmod(0o755)


def _run_a_batch_and_a_stream() -> None:
    from pyspark import SparkContext

    from etalis_py.spark import EVENTS, matches, session
    from tests.spark.programs import PROGRAMS, stream, write_batches

    program = PROGRAMS["seq"]
    with TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        spark = session("local[2]", shards=2, config={"spark.ui.enabled": "false"}, log=log)
        gateway = SparkContext._gateway
        assert gateway is not None
        write_batches(Path(folder) / "in", [stream(1)])
        matches(program, spark.read.schema(EVENTS).parquet(f"{folder}/in")).collect()
        found = matches(program, spark.readStream.schema(EVENTS).parquet(f"{folder}/in"), shards=2, lateness=0)
        writer = found.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
        writer.trigger(availableNow=True).start(f"{folder}/out").awaitTermination()
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends when its input does
        gateway.proc.wait()


if __name__ == "__main__":
    make()
