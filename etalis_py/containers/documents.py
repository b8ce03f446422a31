"""Parsing documents from clients: small ones at once, others in a process where they can do no harm.

A parser blocks the interpreter while it works, and some documents make it work for minutes or take gigabytes (nested
contexts of JSON-LD).  So large documents, and JSON-LD of more than trivial size, go to a process with limits on its
time and memory; a document that exceeds them is refused, and another process takes over.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

from .graphs import JSONLD, TURTLE, Base, ReceivedGraph, parse
from .limits import Limits
from .messages import DocumentLimits, GraphRead, Message, PatchRead, ReadGraph, ReadPatch, ReadRows, Refused, RowsRead
from .nesting import check_depth
from .patch import Operation, parse_patch, relabelled
from .problems import Problem
from .processes import Nursery, Process, ProcessStopped
from .spec import Spec

_SMALL = 16 * 1024
_SMALL_JSON = 2 * 1024
_READERS = 3
_WAITING = 64
_NICE = 5


class DocumentParsers:
    """The parsers of a server.  State: the processes that wait for work, a few."""

    def __init__(self, nursery: Nursery, limits: Limits) -> None:
        self._nursery, self._memory = nursery, limits.document_bytes
        self._limits = DocumentLimits(
            limits.triples_per_graph, limits.graph_bytes, limits.document_depth, limits.document_seconds
        )
        self._places = asyncio.Semaphore(_READERS)
        self._waiting = 0
        self._free: list[Process] = []

    async def graph(self, data: bytes, media_type: str, path: str, base: Base) -> ReceivedGraph:
        """The graph of a body whose null relative IRI is ``path``."""
        limits = self._limits
        if len(data) <= (_SMALL_JSON if media_type == JSONLD else _SMALL):
            check_depth(data, media_type, limits.depth)
            return parse(data, media_type, path, base, limits.triples, limits.longest)
        answer = await self._ask(ReadGraph(data, path, base.inner, base.outer, limits, media_type))
        assert isinstance(answer, GraphRead)
        return answer.graph

    async def rows(
        self, data: bytes, media_type: str, path: str, spec: Spec, columns: Mapping[str, str], base: Base
    ) -> RowsRead:
        """The graphs of the rows of a body; ``columns`` may name those of the time and of the subject."""
        named = columns.get("time", ""), columns.get("subject", "")
        body = data, path, base.inner, base.outer, self._limits
        answer = await self._ask(ReadRows(*body, media_type, spec.mapping, *named, spec.order))
        assert isinstance(answer, RowsRead)
        return answer

    async def patch(self, data: bytes, path: str, base: Base) -> tuple[Operation, ...]:
        """The operations of a patch."""
        limits = self._limits
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise Problem("bad-request", f"the body is not UTF-8: {error}") from None
        if len(data) <= _SMALL:
            check_depth(data, TURTLE, limits.depth)
            return parse_patch(text, path, base)
        answer = await self._ask(ReadPatch(data, path, base.inner, base.outer, limits))
        assert isinstance(answer, PatchRead)
        return relabelled(answer.operations, answer.blank)

    async def _ask(self, message: Message) -> object:
        seconds = self._limits.seconds
        allowed = f"reading the body took more than {seconds} s of processor time (document_seconds)"
        async with self._process() as process:
            try:
                answer = await process.ask(message, seconds, allowed)
            except ProcessStopped as stopped:
                detail = str(stopped).replace("program_bytes", "document_bytes")
                raise Problem("too-large", f"the body was not read: {detail}") from None
        match answer:
            case Refused(kind, detail):
                raise Problem(kind, detail)
            case GraphRead() | RowsRead() | PatchRead():
                return answer
        raise Problem("too-large", f"the body cannot be read: {answer.detail}")

    @contextlib.asynccontextmanager
    async def _process(self) -> AsyncIterator[Process]:
        if self._waiting >= _WAITING:
            raise Problem("busy", "too many large bodies wait to be read", headers={"Retry-After": "2"})
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        process = None
        try:
            while self._free and process is None:
                candidate = self._free.pop()
                process = None if candidate.ended.done() else candidate
            process = process or await self._nursery.fork(self._memory, _NICE)
            yield process
        except BaseException:
            if process is not None:
                process.kill()
            raise
        else:
            if process.memory > self._memory // 4:
                process.kill()
            else:
                self._free.append(process)
        finally:
            self._places.release()
