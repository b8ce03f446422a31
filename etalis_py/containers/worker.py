"""The work of a process forked by the nursery: one program, or the parsers of documents.

The process answers one message after another.  Each states the processor time it may take: beyond that the kernel ends
the process (SIGPROF), whatever code is running.  Allocating memory beyond the limit fails, which ends it as well.

A question about a program is answered by a copy of its process, forked for it with limits of its own: the copy has the
state and the input that the program has, and whatever it does, the program goes on as if nobody had asked.
"""

from __future__ import annotations

import os
import socket
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Sequence

import msgspec

from .confinement import allow, confine_copy
from .frames import frame, receive_with
from .graphs import BLANK, GRAPH_BYTES, TURTLE, Base, ReceivedGraph, parse
from .match_graphs import MemberNames, as_event, match_document, match_graph, match_name
from .messages import (
    TO_PROCESS,
    Add,
    Added,
    Compile,
    Compiled,
    Copied,
    Explained,
    Failed,
    Found,
    GraphRead,
    Message,
    PatchRead,
    Push,
    ReadGraph,
    ReadPatch,
    ReadRows,
    Refused,
    Remove,
    Step,
    Turn,
    Why,
    WhyNot,
)
from .nesting import check_depth
from .patch import parse_patch
from .problems import Problem
from .rows import read_rows
from .runners import MatchLike, ProgramRunner, QueriesRunner, Runner, RunnerFactory

KEPT = 1_000
OUT_OF_MEMORY = 70
_PIECE_BYTES = 256 * 1024
_PIECE_SECONDS = 0.05
_TURN_SECONDS = 0.25
_LOOK_SECONDS = 2.0
_RULES_BYTES = 4 * 1024 * 1024


def work(connection: socket.socket, factory: RunnerFactory | None) -> int:
    """Answer messages until the server closes the socket; the exit code."""
    process = _Process(connection, factory)
    try:
        while True:
            process.answer(*receive_with(connection, TO_PROCESS))
    except (EOFError, ConnectionError):
        return 0
    except MemoryError:
        return OUT_OF_MEMORY


class _Process:
    def __init__(self, connection: socket.socket, factory: RunnerFactory | None) -> None:
        self._connection, self._factory = connection, factory
        self._program: _Program | None = None
        self._queries: _Queries | None = None

    def answer(self, message: Message, asker: socket.socket | None) -> None:
        """Answer a message; the answer to a question goes to the socket that came with it."""
        allow(message.seconds)  # type: ignore[attr-defined]
        try:
            match message:
                case Compile():
                    self._send(self._compile(message))
                case Turn() if running := self._program or self._queries:
                    running.step(message, self._send)
                case Add() if self._queries:
                    self._send(self._queries.add(message))
                case Remove() if self._queries:
                    self._send(self._queries.remove(message.query))
                case Why() | WhyNot() if self._program and asker:
                    self._let_copy_answer(message, asker)
                    self._send(Copied())
                case ReadGraph():
                    self._send(_read_graph(message))
                case ReadRows():
                    self._send(read_rows(message))
                case ReadPatch():
                    self._send(_read_patch(message))
        except Problem as problem:
            self._send(Refused(problem.kind, problem.detail))
        except (MemoryError, ConnectionError):
            raise
        except RecursionError:
            self._send(Failed("it nests too deeply for this server"))
        except Exception as error:  # a program that fails stops and says why; the server goes on
            if "bad_alloc" in str(error):  # the error of C++
                raise MemoryError from error
            self._send(Failed(f"{type(error).__name__}: {error}"))
        finally:
            allow(0)

    def _let_copy_answer(self, question: Why | WhyNot, asker: socket.socket) -> None:
        """Fork a copy of this process that answers the question, and ends."""
        with asker:
            try:
                if os.fork():
                    return
            except OSError as error:
                raise Problem("busy", f"no process can be started for the answer: {error}") from None
            try:
                self._connection.close()
                confine_copy(*question.allowed)
                asker.sendall(frame(self._answer_to(question)))
            except (MemoryError, OSError):
                pass  # the server sees that the socket was closed without an answer
            finally:
                os._exit(0)

    def _answer_to(self, question: Why | WhyNot) -> Message:
        assert self._program is not None
        try:
            if isinstance(question, Why):
                return Explained(self._program.why(question.match))
            return Explained(self._program.why_not(question.where, question.at))
        except Problem as problem:
            return Refused(problem.kind, problem.detail)
        except RecursionError:
            return Failed("the explanation nests too deeply for this server")
        except MemoryError:
            raise
        except Exception as error:
            return Failed(f"{type(error).__name__}: {error}")

    def _send(self, message: Message) -> None:
        self._connection.sendall(frame(message))

    def _compile(self, message: Compile) -> Message:
        if self._factory is None:
            raise Problem("no-engine", "programs cannot be registered: this server was started without an engine")
        base = Base(message.inner, message.outer)
        try:
            if message.standing:
                self._queries = _Queries(self._factory.queries(message.stream), base)
                return self._queries.compile(message.query, message.rules)
            runner = self._factory(message.query, message.stream, message.name)
        except ValueError as error:
            raise Problem("bad-query", str(error)) from None
        rules = runner.graph()
        nodes = rules.get("nodes")
        count = len(nodes) if isinstance(nodes, Sequence) else 0
        document = msgspec.json.encode(rules)
        if count > message.rules or len(document) > _RULES_BYTES:
            raise Problem("too-costly", f"the query compiles to {count} rules and goals; at most {message.rules}")
        self._program = _Program(runner, base)
        return Compiled(document, runner.warnings(), count, runner.gathers, runner.writes)


class _Work(ABC):
    """Takes members.  State: the runner's."""

    def __init__(self, runner: Runner, base: Base, names: MemberNames) -> None:
        self._events, self._base, self._names = runner, base, names
        self._goals, self._counted = 0, 0.0
        self._looked = 0.0

    def _open_goals(self) -> int:
        """The number of open goals, counted once a second as that looks at the whole state."""
        if time.monotonic() - self._counted > 1.0:
            self._goals, self._counted = self._events.goals(), time.monotonic()
        return self._goals

    def step(self, message: Turn, send: Callable[[Message], None]) -> None:
        """Take members for a while; results are sent when there are many, after a moment, and at the end.

        The rest of the members is left to the next message, so that nobody who asks something waits for all of them.
        """
        piece = _Piece(message, self._names)
        if isinstance(message, Push):
            self._push(message, piece, send)
        else:
            self._take(self._events.idle(), piece, send)
        piece.send(
            send,
            self._open_goals(),
            waits=self._events.waits(),
            done=True,
            unseen=self._unseen(isinstance(message, Push)),
        )

    def _unseen(self, busy: bool) -> list[str] | None:
        """What was left out, and what no event has had, if that is looked at now."""
        if busy and time.monotonic() - self._looked < _LOOK_SECONDS:
            return None
        self._looked = time.monotonic()
        return self._events.unseen()

    def _push(self, message: Push, piece: _Piece, send: Callable[[Message], None]) -> None:
        """Take members one by one."""
        until = time.monotonic() + _TURN_SECONDS
        for member in message.members:
            allow(message.seconds)
            self._take(self._events.push(as_event(member, self._base)), piece, send)
            piece.taken += 1
            if time.monotonic() > until:
                return
            if piece.is_due():
                piece.send(send, self._open_goals())

    @abstractmethod
    def _take(self, matches: Sequence[MatchLike], piece: _Piece, send: Callable[[Message], None]) -> None:
        """Queue matches for sending."""


class _Program(_Work):
    """A program.  State: also the last thousand matches, to explain them."""

    def __init__(self, runner: ProgramRunner, base: Base) -> None:
        super().__init__(runner, base, MemberNames(runner.settled))
        self._runner = runner
        self._kept: deque[MatchLike] = deque(maxlen=KEPT)

    def why(self, match: str) -> bytes:
        """The explanation of a kept match, as JSON."""
        kept = next((one for one in self._kept if one.id == match and not one.retracted), None)
        if kept is None:
            raise Problem("no-match", f"the match {match!r} is not among the last {KEPT} of this program")
        return _as_json(kept.why())

    def why_not(self, where: str, at: str) -> bytes:
        """Why an expected match did not come, as text and as JSON."""
        try:
            report = self._runner.why_not(where, at)
        except ValueError as error:
            raise Problem("bad-request", str(error)) from None
        return msgspec.json.encode({"text": str(report), "report": msgspec.Raw(_as_json(report))})

    def _push(self, message: Push, piece: _Piece, send: Callable[[Message], None]) -> None:
        """Take members at once if they may correct others: all corrections among them then cost one replay."""
        if not self._runner.gathers:
            super()._push(message, piece, send)
            return
        allow(message.seconds * len(message.members))
        events = [as_event(member, self._base) for member in message.members]
        self._take(self._runner.push_all(events), piece, send)
        piece.taken += len(events)

    def _take(self, matches: Sequence[MatchLike], piece: _Piece, send: Callable[[Message], None]) -> None:
        for match in matches:
            self._kept.append(match)
            piece.add(match, self._base)
            if piece.is_large():
                piece.send(send, self._open_goals())


class _Queries(_Work):
    """Many queries.  The matches of one may end that one, but no other."""

    def __init__(self, runner: QueriesRunner, base: Base) -> None:
        super().__init__(runner, base, MemberNames())  # their matches are not taken back
        self._runner = runner

    def compile(self, query: str, most: int) -> Compiled:
        """Compile a query in a process that is thrown away, or start a program."""
        if query:
            self._runner.add("query", query)
        size = self._runner.rules()
        if size > most:
            raise Problem("too-costly", f"the query compiles to {size} rules and goals; at most {most}")
        return Compiled(b'{"nodes":[],"edges":[]}', [], size)

    def add(self, message: Add) -> Added:
        """Add queries, each within its time."""
        running, refused = [], {}
        for name, query in message.queries:
            allow(message.seconds)
            known = self._runner.knows(query)
            if message.size is None and not known:
                continue
            rules = self._runner.rules() + (0 if known else message.size or 0)
            if rules > message.rules:
                refused[name] = (
                    f"with this query the program would have {rules} rules and goals, at most {message.rules} "
                    "(standing_rules); write it as another query of the program is written, or use another program"
                )
                continue
            try:
                if message.beside and not self._runner.is_ready(name, query):
                    self._runner.prepare(name, query, message.size or 0)
                    continue
                self._runner.add(name, query)
                running.append(name)
            except ValueError as error:
                refused[name] = str(error)
        return Added(running, refused)

    def remove(self, name: str) -> Added:
        """End a query."""
        self._runner.remove(name)
        return Added([], {name: "removed"})

    def _take(self, matches: Sequence[MatchLike], piece: _Piece, send: Callable[[Message], None]) -> None:
        counts: Counter[str] = Counter()
        ended: set[str] = set()
        for match in matches:
            if match.query in ended:
                continue
            counts[match.query] += 1
            reason = piece.add_of_many(match, counts[match.query])
            if reason:
                self._runner.remove(match.query)
                ended.add(match.query)
                piece.ended[match.query] = reason
            if piece.is_full():
                piece.send(send, self._open_goals())


def _as_json(explanation: object) -> bytes:
    as_dict = getattr(explanation, "to_dict", None)
    plain = (str, int, float, bool, list, dict, tuple, type(None))
    if as_dict is not None:
        explanation = as_dict()
    return msgspec.json.encode(explanation if isinstance(explanation, plain) else str(explanation))


class _Piece:
    """Matches on their way to the server."""

    def __init__(self, message: Turn, names: MemberNames) -> None:
        self._message, self._names = message, names
        self._clear()

    def _clear(self) -> None:
        self.taken = self._found = self._bytes = 0
        self._matches: deque[Found] = deque()
        self.ended: dict[str, str] = {}
        self._since = time.monotonic()

    def add_of_many(self, match: MatchLike, count: int) -> str:
        """Add a match of one of many queries, its ``count``-th for one member; returns why it is refused, if so."""
        if count > self._message.most:
            return f"it found more than {self._message.most} matches for one graph (matches_per_graph); ask for less"
        document = msgspec.json.encode(match_document(match))
        if len(document) > self._message.longest:
            return self._too_long()
        self._found += 1
        self._matches.append(Found(match.id, document, None, match.end_us, match.query))
        self._bytes += len(document)
        return ""

    def _too_long(self) -> str:
        return f"a match is longer than {self._message.longest} bytes (match_bytes); select less of it"

    def add(self, match: MatchLike, base: Base) -> None:
        document = msgspec.json.encode(match_document(match))
        if len(document) > self._message.longest:
            raise ValueError(self._too_long())
        self._found += 1
        name, taken_back = self._names.of(match)
        self._matches.append(Found(name, document, self._graph(match, name, taken_back, base), match.end_us))
        self._bytes += len(document)
        while not match.triples and (
            len(self._matches) > KEPT or (self._bytes > _PIECE_BYTES and len(self._matches) > 1)
        ):
            self._bytes -= len(self._matches.popleft().document)  # only SELECT rows, which are only shown

    def _graph(self, match: MatchLike, name: str, taken_back: str, base: Base) -> ReceivedGraph | None:
        if not match.triples:
            return None
        message = self._message
        path = message.output + match_name(name)
        text = match_graph(match, message.order, taken_back and message.prefix + taken_back)
        return parse(text, TURTLE, path, base, message.triples, GRAPH_BYTES)

    def is_large(self) -> bool:
        return self._bytes > _PIECE_BYTES

    def is_full(self) -> bool:
        return self.is_large() or len(self._matches) >= KEPT

    def is_due(self) -> bool:
        return self.is_large() or time.monotonic() - self._since > _PIECE_SECONDS

    def send(
        self,
        send: Callable[[Message], None],
        goals: int,
        *,
        waits: float | None = None,
        done: bool = False,
        unseen: list[str] | None = None,
    ) -> None:
        send(Step(self.taken, self._found, list(self._matches), goals, waits, done, self.ended, unseen))
        self._clear()


def _read_graph(message: ReadGraph) -> Message:
    check_depth(message.data, message.media_type, message.limits.depth)
    base, limits = Base(message.inner, message.outer), message.limits
    return GraphRead(parse(message.data, message.media_type, message.path, base, limits.triples, limits.longest))


def _read_patch(message: ReadPatch) -> Message:
    check_depth(message.data, TURTLE, message.limits.depth)
    return PatchRead(parse_patch(message.data.decode(), message.path, Base(message.inner, message.outer)), BLANK)
