"""``etalis`` with its processor time split by step, for a run from topic to topic.

    python -m benchmarks.topic_steps FILE run …

FILE is a JSON object afterwards: the seconds of each step, without those of steps inside it.  Only the main thread is
split; ``client threads`` are those in which the client of Kafka talks to the broker.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import confluent_kafka

from etalis_py.cli.main import main as etalis
from etalis_py.connectors.kafka import KafkaSink
from etalis_py.durable.keeper import Keeper
from etalis_py.engine.engine import Engine
from etalis_py.streams import kafka
from etalis_py.streams.columns import json_messages
from etalis_py.streams.waiting import Waiting

STEPS: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("consume", kafka._Reader, ("_take",)),
    ("decode", json_messages.JsonMessages, ("_decoded",)),
    ("map", json_messages, ("object_table", "rows_of", "with_others")),
    ("merge", Waiting, ("add", "add_columns", "take")),
    ("engine", Engine, ("push_all", "advance", "close")),
    ("encode", KafkaSink, ("write", "write_results")),
    ("produce", KafkaSink, ("put",)),
    ("checkpoint", Keeper, ("_keep",)),
)


class Steps:
    """The processor time of the main thread, by step.  State: the steps that are going on, the innermost last."""

    def __init__(self) -> None:
        self._spent: Counter[str] = Counter()
        self._inside = ["start"]
        self._since = 0.0

    def enter(self, step: str) -> None:
        self._charge()
        if self._inside == ["start"] and step == "consume":
            self._inside = ["everything else"]
        self._inside.append(step)

    def leave(self) -> None:
        self._charge()
        self._inside.pop()

    def _charge(self) -> None:
        now = time.thread_time()
        self._spent[self._inside[-1]] += now - self._since  # type: ignore[assignment]
        self._since = now

    def timed(self, step: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def within(*arguments: Any, **options: Any) -> Any:
            if current_thread() is not main_thread():
                return call(*arguments, **options)
            self.enter(step)
            try:
                return call(*arguments, **options)
            finally:
                self.leave()

        return within

    def result(self) -> dict[str, float]:
        self._charge()
        self._spent["client threads"] = time.process_time() - time.thread_time()  # type: ignore[assignment]
        return {step: round(spent, 3) for step, spent in self._spent.most_common()}


def split(steps: Steps) -> None:
    """From now on count what each step takes."""
    for step, owner, names in STEPS:
        for name in names:
            setattr(owner, name, steps.timed(step, getattr(owner, name)))

    class Consumer(confluent_kafka.Consumer):
        """The client's own methods cannot be replaced."""

        poll = steps.timed("consume", confluent_kafka.Consumer.poll)
        consume = steps.timed("consume", confluent_kafka.Consumer.consume)

    confluent_kafka.Consumer = Consumer  # type: ignore[misc]


def main(arguments: list[str]) -> int:
    steps = Steps()
    split(steps)
    try:
        return etalis(arguments[1:])
    finally:
        Path(arguments[0]).write_text(json.dumps(steps.result()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
