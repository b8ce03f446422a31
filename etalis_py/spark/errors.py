"""Errors and warnings of the pipeline, importable without loading the engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

_RAISED = re.compile(
    r"^(?:\w+\.)*(\w+(?:Error|Exceeded)): (.*?)(?=\n\s*at |\n? SQLSTATE|\nTraceback |\Z)", re.MULTILINE | re.DOTALL
)
_OURS = ("SparkError", "LimitExceeded", "QueryError", "KnowledgeError", "SnapshotError", "StreamError")
_OF_PLAN = re.compile(r"^.*?\[USER_RAISED_EXCEPTION\] (.*?)(?=\n? SQLSTATE|\Z)", re.DOTALL)


class SparkError(ValueError):
    """A program or its options cannot run on Spark, or stored state belongs to another job."""


def raised_in_python(account: str) -> list[tuple[str, str]]:
    """The errors that Python has raised, by Spark's account of a failure: the name and the message of each."""
    return [(m[1], " ".join(m[2].split())) for m in _RAISED.finditer(account)]


def is_ours(error: BaseException) -> bool:
    """Whether an error of this package says to users what is wrong, so that they need not know where it was found."""
    return type(error).__name__ in _OURS


def message_of_ours(account: str) -> str:
    """The message of the last error of this package in Spark's account of a failure, "" if there is none.

    >>> message_of_ours("a.PythonException: An exception was thrown:\\nTraceback …\\n  File …\\na.b.SparkError: no")
    'no'
    """
    return next((message for name, message in reversed(raised_in_python(account)) if name in _OURS), "")


@contextmanager
def short_errors() -> Iterator[None]:
    """Raise what stops a job as a ``SparkError`` of one sentence, without Spark's account of how it came here.

    It stands around what waits for a job of ``matches``, such as ``query.awaitTermination()`` or ``found.collect()``.
    Errors that are neither of this package nor raised by an expression of the plan stay as they are.

    >>> from etalis_py.spark import short_errors                                 # doctest: +SKIP
    >>> with short_errors():                                                     # doctest: +SKIP
    ...     query.awaitTermination()
    etalis_py.spark.errors.SparkError: the checkpoint does not belong to this program: …
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        message = message_of_ours(account := str(error))
        if not message and (found := _OF_PLAN.match(account)):
            message = " ".join(found[1].split())
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


__all__ = ["SkewWarning", "SparkError", "check_frame", "is_ours", "message_of_ours", "raised_in_python", "short_errors"]
