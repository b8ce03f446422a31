"""Files with queries, read or refused: what is missing, a folder, a stream, or no text in UTF-8."""

from __future__ import annotations

from pathlib import Path

from etalis_rules.messages import query_text

from etalis_py.cli.errors import UsageError
from etalis_py.events.errors import name_like


def refuse_stream(name: str) -> None:
    """Refuse a stream's file among the queries, for example after the shell has expanded a pattern."""
    from etalis_py.streams.sources import format_of

    if format_of(name):
        raise UsageError(
            f"{name} is a stream by its ending, where a query is expected: write --stream before each stream, and "
            "quote a pattern, as --stream 'data/*.csv'"
        )


def text_of(name: str) -> str:
    """The text of a query file."""
    try:
        return decoded(Path(name).read_bytes(), name)
    except FileNotFoundError:
        near = name_like(name)
        hint = f"; did you mean {near}?" if near else ""
        if set("{ ?") & set(name):
            hint = "; to give a query itself, write it after -q"
        raise UsageError(f"there is no query file {name}{hint}") from None
    except IsADirectoryError:
        raise UsageError(f"{name} is a folder, not a query file: --queries {name} takes all .rq files in it") from None
    except OSError as error:
        raise UsageError(f"the query file {name} cannot be read: {error.strerror}") from None


def decoded(data: bytes, name: str) -> str:
    """The text of a query that stands in these bytes."""
    try:
        return query_text(data, name)
    except ValueError as error:
        raise UsageError(str(error)) from None
