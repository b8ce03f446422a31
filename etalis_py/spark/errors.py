"""Errors and warnings of the pipeline, importable without loading the engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

_RAISED = re.compile(
    r"^(?:\w+\.)*(\w+(?:Error|Exceeded)): (.*?)(?=\n\s*at |\n? SQLSTATE|\nTraceback |\Z)", re.MULTILINE | re.DOTALL
)
_OURS = ("SparkError", "LimitExceeded", "QueryError", "KnowledgeError", "SnapshotError")


class SparkError(ValueError):
    """A program or its options cannot run on Spark, or stored state belongs to another job."""


def raised_in_python(account: str) -> list[tuple[str, str]]:
    """The errors that Python has raised, by Spark's account of a failure: the name and the message of each."""
    return [(m[1], " ".join(m[2].split())) for m in _RAISED.finditer(account)]


def message_of_ours(account: str) -> str:
    """The message of the last error of this package in Spark's account of a failure, "" if there is none.

    >>> message_of_ours("a.PythonException: An exception was thrown:\\nTraceback …\\n  File …\\na.b.SparkError: no")
    'no'
    """
    return next((message for name, message in reversed(raised_in_python(account)) if name in _OURS), "")


@contextmanager
def in_our_words() -> Iterator[None]:
    """Raise what an error of this package says without Spark's account of how it came from another process."""
    try:
        yield
    except Exception as error:
        message = message_of_ours(str(error)) if type(error).__module__.startswith(("pyspark.", "py4j.")) else ""
        if not message:
            raise
        raise SparkError(message) from None


def check_frame(name: str, given: object, taker: str, also: str = "", *, table: bool = True) -> None:
    """Refuse what is no DataFrame of Spark, such as a frame of pandas, with what to give ``taker`` instead.

    ``table``: it holds events, so ``run`` would take such a table without Spark.
    """
    if hasattr(given, "sparkSession"):
        return
    needs = f"and {taker} needs a DataFrame of Spark:"
    if hasattr(given, "to_spark"):
        raise SparkError(f"{name} is a {type(given).__name__} of pandas on Spark, {needs} its to_spark() makes one")
    kind = f"{type(given).__module__.partition('.')[0]}.{type(given).__qualname__}"
    raise SparkError(
        f"{name} is a {kind}, {needs} spark.createDataFrame(…) makes one{also and f', {also}'}"
        f"{'; run(query, …) takes other tables as they are' if table else ''}"
    )


class SkewWarning(UserWarning):
    """One key has so many of the events that the other shards wait for its shard."""


__all__ = ["SkewWarning", "SparkError", "check_frame", "in_our_words", "message_of_ours", "raised_in_python"]
