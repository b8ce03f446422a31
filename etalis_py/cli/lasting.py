"""``--checkpoint DIR`` without Spark: what must be the same in the next process, and what cannot go on at all."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from etalis_py.cli.drafts import Drafts, Kept
from etalis_py.cli.errors import Failure, UsageError
from etalis_py.cli.outputs import DurableOutlet
from etalis_py.cli.sources import mappings_of, split_name
from etalis_py.durable.errors import CheckpointError
from etalis_py.durable.folder import Folder
from etalis_py.durable.identity import file_digest
from etalis_py.durable.keeper import Keeper, Parts
from etalis_py.engine.engine import Engine
from etalis_py.engine.lasting import counts_of, sources_of, texts_of
from etalis_py.engine.program import Program
from etalis_py.events.errors import without_password
from etalis_py.streams import DeadLetters, Stream
from etalis_py.streams.postgres_table import is_postgres, triples_digest

_READING = (
    "time_column", "subject_column", "time_predicate", "start_predicate", "end_predicate", "time_unit", "messages",
    "close_on_message", "whole_document", "keep_order",
)  # fmt: skip
_MEANING = (
    "policy", "entailment", "lateness", "revise", "duplicates", "until", "explain_matches", "format", "ties", "start",
)  # fmt: skip


def is_lasting(options: Namespace) -> bool:
    """Whether the local engine keeps the run in a folder."""
    return options.engine == "local" and getattr(options, "checkpoint", None) is not None


def check_lasting(options: Namespace) -> None:
    """Refuse options that a run cannot go on with."""
    if not is_lasting(options):
        if options.checkpoint_every is not None and options.engine == "local":
            raise UsageError("--checkpoint-every says how often: name the folder as well, with --checkpoint DIR")
        if options.checkpoint_every is not None:
            raise UsageError("--checkpoint-every is for the local engine: Spark writes a checkpoint after each batch")
        return
    reasons = {
        "speed": "a replay at its own pace begins anew each time",
        "timeline": "a picture is drawn of one run from its beginning to its end",
        "watch": "the queries of a run that goes on stay the same",
    }
    for name, reason in reasons.items():
        if getattr(options, name, None):
            raise UsageError(f"--{name} has no place beside --checkpoint: {reason}")


def drafts_of(options: Namespace) -> Drafts:
    """The mappings that the run began with, if it goes on."""

    def kept() -> Kept:
        try:
            last = Folder(options.checkpoint).newest()
        except CheckpointError as error:
            raise Failure(str(error)) from None
        return () if last is None else last["identity"].get("drafts", ())

    return Drafts(kept) if is_lasting(options) else Drafts()


def identity(
    options: Namespace, program: Program, stream: Stream, drafts: Drafts, background: Mapping[str, Any]
) -> dict[str, Any]:
    """What must be the same: texts, sources in their order, sink, and every option that changes what comes out.

    The mappings that were drafted are the same because they are taken from here.  ``background`` is what was read of
    each source of it that stays the same: a table of a database may have other rows already.
    """
    settings: dict[str, Any] = {f"--{name.replace('_', '-')}": getattr(options, name, None) for name in _MEANING}
    settings |= {f"--{name.replace('_', '-')}": getattr(options, name, None) for name in _READING}
    settings["the content of --background"] = [
        triples_digest(background[name]) if is_postgres(name) and name in background else file_digest(name)
        for name in options.background or ()
    ]
    settings["--background-stream"] = options.background_stream and file_digest(options.background_stream)
    names = [split_name(text)[0] for text in options.stream]
    mappings = mappings_of(options, names)
    settings["the content of --mapping"] = sorted([name, file_digest(file)] for name, file in mappings.items())
    settings["the content of --context"] = options.context and file_digest(options.context)
    name = without_password(options.sink.rstrip("/"))
    sink = name if "://" in name or name == "-" else name.rpartition("/")[2]
    same = {"program": texts_of(program), "options": settings, "sources": sources_of(stream), "sink": sink}
    return {**same, "drafts": drafts.all()}


def keeper_of(
    options: Namespace,
    program: Program,
    engine: Engine,
    stream: Stream,
    outlet: DurableOutlet,
    letters: DeadLetters | None,
    drafts: Drafts,
    background: Mapping[str, Any],
) -> Keeper:
    """The keeper of a run, which has begun: it stands where the newest checkpoint was made."""
    same = identity(options, program, stream, drafts, background)
    parts = Parts(engine, stream, outlet.sink, same, letters, counts_of(engine))
    every = {} if options.checkpoint_every is None else {"every": options.checkpoint_every / 1e6}
    outlet.kept = True
    keeper = Keeper(Folder(options.checkpoint), parts, **every)
    try:
        keeper.begin()
    except CheckpointError as error:
        keeper.close()
        raise Failure(str(error)) from None
    except BaseException:
        keeper.close()
        raise
    if not keeper.resumed:
        for leaf in stream.leaves:
            if leaf.origin is not None and not (leaf.origin.again or leaf.origin.sent_again):
                print(
                    f"etalis: {leaf.source} cannot be read again: after a crash, what came since the last checkpoint "
                    f"is lost",
                    file=sys.stderr,
                )
        if outlet.sink.guarantee != "exactly once":
            print(
                f"etalis: {without_password(options.sink)} gets every match {outlet.sink.guarantee}: after a crash "
                f"some may come again, with the same ids",
                file=sys.stderr,
            )
    return keeper
