"""The store: one writer thread that commits in groups, and any number of readers beside it (SQLite in WAL mode).

A change is a function of a ``Transaction``.  The writer takes all waiting changes, runs them in one transaction (a
refused one leaves no trace), commits, and only then answers any of them: acknowledged changes are durable, and one disk
flush serves hundreds of posts.

Cost per change: a few index insertions; state in memory: the descriptions of the containers, never their members.
"""

from __future__ import annotations

import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from . import schema
from .catalogue import Catalogue
from .limits import Limits
from .problems import Problem
from .retention import Tidier, write_counts
from .transaction import Arrivals, StoredMember, Transaction

T = TypeVar("T")
_LOG = logging.getLogger("etalis.containers")

_GROUP = 512
_TIDY_EVERY = 0.1
_CHECKPOINT_EVERY = 0.5
_LOG_FRAMES = 16_384


Listener = Callable[[list[StoredMember]], None]
ExpiryListener = Callable[[Mapping[int, list[int]]], None]


@dataclass(slots=True)
class _Task(Generic[T]):
    change: Callable[[Transaction], T]
    alone: bool
    done: Future[T]


class _Again(Exception):
    """A change of a batch was refused: the batch is run again, with each change separate."""


class Store:
    """A store in a file, or in memory when ``path`` is None."""

    def __init__(
        self,
        path: Path | None,
        limits: Limits | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self.path, self.limits, self.clock = path, limits or Limits(), clock
        self._lock = schema.take(path) if path else None
        try:
            self._writer = schema.connect(path)
            self.base = schema.prepare(self._writer, path)
            self._file = os.stat(path) if path else None
        except schema.StoreError:
            if self._lock:
                self._lock.close()
            raise
        self.catalogue = Catalogue.load(self._writer, self.base)
        self._listeners: tuple[Listener, ...] = ()
        self._expiry_listeners: tuple[ExpiryListener, ...] = ()
        self._tasks: queue.Queue[_Task[Any] | None] = queue.Queue()
        self._held: _Task[Any] | None = None
        self._tidier = Tidier()
        self._arrivals = Arrivals()
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._memory = threading.RLock()
        self._closed = False
        self.pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="store-read")
        self._restart_log = False
        self._stopping = threading.Event()
        if path is not None:
            self._writer.execute("PRAGMA wal_autocheckpoint = 0")  # see _checkpoint
        self._thread = threading.Thread(target=self._run, name="store-write", daemon=True)
        self._thread.start()
        self._checkpoints: threading.Thread | None = None
        if path is not None:
            self._checkpoints = threading.Thread(target=self._checkpoint, name="store-checkpoint", daemon=True)
            self._checkpoints.start()

    def listen(self, listener: Listener) -> None:
        """Call this in the writer's thread with the new members of each commit, before they are acknowledged."""
        self._listeners = (*self._listeners, listener)

    def unlisten(self, listener: Listener) -> None:
        self._listeners = tuple(known for known in self._listeners if known != listener)

    def listen_to_expiry(self, listener: ExpiryListener) -> None:
        """Call this in the writer's thread with the members whose retention is over, while they can still be read.

        So whoever does not find one of them knows of it by then.
        """
        self._expiry_listeners = (*self._expiry_listeners, listener)

    # -- writing ------------------------------------------------------------------------------------------------

    def submit(self, change: Callable[[Transaction], T], *, alone: bool = False) -> Future[T]:
        """Queue a change; ``alone``: it alters containers, so later changes must see its effect."""
        if self._closed:
            raise Problem("busy", "the server is stopping")
        if self._tasks.qsize() >= self.limits.waiting_writes:
            raise Problem("busy", "too many writes are waiting (waiting_writes)", headers={"Retry-After": "1"})
        task = _Task(change, alone, Future())
        self._tasks.put(task)
        return task.done

    def change(self, change: Callable[[Transaction], T], *, alone: bool = False) -> T:
        """Make a change and wait until it is durable."""
        return self.submit(change, alone=alone).result()

    def _run(self) -> None:
        due, more = 0.0, False
        while True:
            batch = self._next(0.0 if more else _TIDY_EVERY)
            if batch is None:
                break
            now = time.monotonic()
            tidying = now >= due or (more and not batch)
            if tidying:
                due = now + _TIDY_EVERY
            if self._restart_log:
                self._start_log_anew()
            if batch or tidying:
                left = self._commit(batch, tidying)
                more = left if tidying else more

    def _next(self, wait: float) -> list[_Task[Any]] | None:
        """The changes of the next transaction; empty if nothing came in time, None if the store closes."""
        batch: list[_Task[Any]] = []
        task = self._held
        self._held = None
        if task is None:
            try:
                task = self._tasks.get(timeout=wait) if wait else self._tasks.get_nowait()
            except queue.Empty:
                return batch
            if task is None:
                return None
        batch.append(task)
        while not batch[-1].alone and len(batch) < _GROUP:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                break
            if task is None:
                self._tasks.put(None)
                break
            if task.alone:
                self._held = task
                break
            batch.append(task)
        return batch

    def _commit(self, batch: list[_Task[Any]], tidying: bool) -> bool:
        batch = [task for task in batch if task.done.set_running_or_notify_cancel()]
        with self._memory:
            try:
                try:
                    # Almost always every change of a batch succeeds, and then none needs a savepoint.
                    transaction, answers, more = self._run_batch(batch, tidying, apart=len(batch) < 2)
                except _Again:
                    self._writer.execute("ROLLBACK")
                    transaction, answers, more = self._run_batch(batch, tidying, apart=True)
                self._writer.execute("COMMIT")
            except Exception as error:  # a full disk, a broken file: no change was made; all callers get it
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                problem = Problem("busy", f"the store cannot be written: {error}", headers={"Retry-After": "5"})
                for task in batch:
                    task.done.set_exception(problem)
                return False
            for action in transaction.after:
                action()
        if transaction.stored:
            self._announce(self._listeners, transaction.stored)
        for answer in answers:
            answer()
        return more

    def _check_in_place(self) -> None:
        if self.path is not None and self._file is not None:
            schema.check_in_place(self.path, self._file)

    def _announce(self, listeners: Iterable[Callable[[T], None]], members: T) -> None:
        for listener in listeners:
            try:
                listener(members)
            except Exception:  # a failing listener must not stop the writer
                _LOG.exception("a listener of the store failed")

    def _run_batch(
        self, batch: list[_Task[Any]], tidying: bool, *, apart: bool
    ) -> tuple[Transaction, list[Callable[[], None]], bool]:
        transaction = Transaction(self._writer, self.catalogue, self.limits, self.base, self._arrivals)
        self._check_in_place()
        self._writer.execute("BEGIN IMMEDIATE")
        answers = [self._attempt(task, transaction, apart=apart) for task in batch]
        more = tidying and self._tidier.tidy(transaction, self.clock())
        write_counts(transaction)
        if transaction.expired:
            self._announce(self._expiry_listeners, transaction.expired)
        return transaction, answers, more

    def _attempt(self, task: _Task[Any], transaction: Transaction, *, apart: bool) -> Callable[[], None]:
        """Run one change, with ``apart`` in a savepoint of its own, so that a refused one leaves no trace."""
        after, stored = len(transaction.after), len(transaction.stored)
        counts = {number: list(numbers) for number, numbers in transaction.counts.items()} if apart else {}
        if apart:
            self._writer.execute("SAVEPOINT one")
        try:
            result = task.change(transaction)
        except sqlite3.OperationalError:
            raise
        except Exception as error:
            if not apart:
                raise _Again from error
            del transaction.after[after:], transaction.stored[stored:]
            transaction.counts = counts
            self._writer.execute("ROLLBACK TO one")
            self._writer.execute("RELEASE one")
            failure = error
            return lambda: task.done.set_exception(failure)
        if apart:
            self._writer.execute("RELEASE one")
        return lambda: task.done.set_result(result)

    # -- the write-ahead log ------------------------------------------------------------------------------------

    def _checkpoint(self) -> None:
        """Move committed changes from the log into the database, alongside the writer, so that no post waits for it."""
        connection = schema.connect(self.path)
        while not self._stopping.wait(_CHECKPOINT_EVERY):
            try:
                _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except sqlite3.Error as error:
                _LOG.warning("the log of the store could not be moved into it, and grows: %s", error)
                continue
            # While posts keep coming the log is never moved completely, and so never restarts: the writer has to do it.
            self._restart_log = frames > _LOG_FRAMES
        connection.close()

    def _start_log_anew(self) -> None:
        """Restart the log: little is left to move by now, and it does not wait long for readers in the way."""
        self._restart_log = False
        self._writer.execute("PRAGMA busy_timeout = 20")
        try:
            self._writer.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        except sqlite3.Error as error:
            _LOG.warning("the log of the store could not be started anew, and grows: %s", error)
        self._writer.execute("PRAGMA busy_timeout = 10000")

    # -- reading ------------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with, one for each thread; in memory all share the writer's."""
        if self.path is None:
            with self._memory:
                yield self._writer
            return
        connection = getattr(self._local, "connection", None)
        if connection is None:
            try:
                self._check_in_place()  # SQLite would make a new, empty file
            except schema.StoreError as error:
                raise Problem("busy", f"the store cannot be read: {error}") from None
            connection = self._local.connection = schema.connect(self.path, read_only=True)
            self._readers.append(connection)
        yield connection

    def close(self) -> None:
        """Finish the waiting changes, then release the file."""
        if self._closed:
            return
        self._closed = True
        self._tasks.put(None)
        self._thread.join()
        self._stopping.set()
        if self._checkpoints:
            self._checkpoints.join()
        self.pool.shutdown(wait=True)
        for connection in [*self._readers, self._writer]:
            connection.close()
        if self._lock:
            self._lock.close()
