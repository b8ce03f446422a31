"""The messages between the server, its nursery and the processes forked there; all are plain data."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from .graphs import ReceivedGraph
from .patch import Operation
from .transaction import StoredMember


class Message(msgspec.Struct, frozen=True, tag=True):
    """A message, decoded by the name in its tag."""


# -- server → nursery ---------------------------------------------------------------------------------------------


class Setup(Message, frozen=True, tag=True):
    """The first message: the module search path, and the ``module:function`` that makes the factory of runners."""

    path: list[str]
    factory: str | None
    options: dict[str, object]


class Fork(Message, frozen=True, tag=True):
    """Fork a process; its socket comes with this message.  ``memory`` is in bytes, beyond what it starts with."""

    number: int
    memory: int
    nice: int


class Kill(Message, frozen=True, tag=True):
    """End a process and everything it has started."""

    number: int


# -- nursery → server ---------------------------------------------------------------------------------------------


class Ready(Message, frozen=True, tag=True):
    """The modules are loaded; ``error`` says why programs cannot run, if they cannot."""

    error: str


class Forked(Message, frozen=True, tag=True):
    number: int
    pid: int


class Ended(Message, frozen=True, tag=True):
    """A process has ended, with this status of ``os.waitpid``."""

    number: int
    status: int


# -- server → process ---------------------------------------------------------------------------------------------


class Compile(Message, frozen=True, tag=True):
    """Compile the query of a program of this name.  ``seconds`` is processor time, as in all that follows.

    ``standing``: it is one of the queries of a program of many; without a text, the program itself, with no query yet.
    """

    query: str
    stream: str
    inner: str
    outer: str
    rules: int
    seconds: float
    name: str = ""
    standing: bool = False


class Add(Message, frozen=True, tag=True):
    """Run these queries, each a name and a text, beside the others; one with the name of another replaces it.

    ``size`` is the number of rules of a query that was compiled elsewhere before.  If it is None, only queries of kinds
    that already run are added.  ``rules`` is the most there may be in all.  With ``beside`` a query of a new kind is
    compiled beside the others, and added by the same message once it is ready; without it, the message waits for that.
    """

    queries: list[tuple[str, str]]
    size: int | None
    rules: int
    seconds: float
    beside: bool = False


class Remove(Message, frozen=True, tag=True):
    """Stop running this query."""

    query: str
    seconds: float


class Turn(Message, frozen=True, tag=True):
    """Matches become members of ``output``, under names with ``prefix``.

    ``most`` is how many matches one of many queries may have for one member.
    """

    output: str
    prefix: str
    order: str
    triples: int
    longest: int
    seconds: float
    most: int


class Push(Turn, frozen=True, tag=True):
    """Take these members, each within ``seconds``.

    The answer may say that only the first of them were taken; the others come again with the next message.
    """

    members: list[StoredMember]


class Idle(Turn, frozen=True, tag=True):
    """No event has come for a while: close the open instant."""


class Why(Message, frozen=True, tag=True):
    """Explain one of the kept matches.

    This is answered by a copy of the process, over the socket that comes with the question; the process itself only
    says that the copy has been made.  ``allowed`` is what the copy may use: seconds of processor time, seconds by the
    clock, and bytes of memory beyond what it starts with.
    """

    match: str
    seconds: float
    allowed: tuple[float, float, int]


class WhyNot(Message, frozen=True, tag=True):
    """Explain why a match did not come: ``where`` and ``at`` describe the expected one.  Answered as ``Why`` is."""

    where: str
    at: str
    seconds: float
    allowed: tuple[float, float, int]


class DocumentLimits(msgspec.Struct, frozen=True):
    """What a graph made of a body may have, how deep the body may nest, and the processor time for reading it."""

    triples: int
    longest: int
    depth: int
    seconds: float


class ReadDocument(Message, frozen=True, tag=True):
    """A body to read: the path of what it is about, and the two spellings of the server's addresses."""

    data: bytes
    path: str
    inner: str
    outer: str
    limits: DocumentLimits

    @property
    def seconds(self) -> float:
        return self.limits.seconds


class ReadGraph(ReadDocument, frozen=True, tag=True):
    """Parse the graph of a body."""

    media_type: str


class ReadRows(ReadDocument, frozen=True, tag=True):
    """Make graphs of the rows of a body, by a mapping, or else by the columns that are named.

    ``order``: the relation that gives the time of a graph.
    """

    media_type: str
    mapping: str
    time: str
    subject: str
    order: str


class ReadPatch(ReadDocument, frozen=True, tag=True):
    """Parse a patch."""


# -- process → server ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """A match: its JSON, the graph to store if it is one of CONSTRUCT, and the end of its interval, if any.

    ``query`` names the query, if it is one of many.
    """

    id: str
    document: bytes
    graph: ReceivedGraph | None
    end: int | None
    query: str = ""


class Compiled(Message, frozen=True, tag=True):
    """The rules as a graph, as JSON, warnings about the query, and how many rules and goals it has.

    ``gathers``: the program takes a backlog at once, because there may be corrections in it.  ``writes``: its matches
    are graphs, which go into a container.
    """

    rules: bytes
    warnings: list[str]
    size: int
    gathers: bool = False
    writes: bool = False


class Added(Message, frozen=True, tag=True):
    """The names of queries that now run, and why others do not; one in neither has yet to be compiled."""

    running: list[str]
    refused: dict[str, str]


class Refused(Message, frozen=True, tag=True):
    """A fault in the client's input: the kind and the detail of a ``Problem``."""

    kind: str
    detail: str


class Failed(Message, frozen=True, tag=True):
    """The program failed and no longer runs."""

    detail: str


class Step(Message, frozen=True, tag=True):
    """The results of members: ``taken`` more of them, ``found`` more matches.

    Only the last thousand rows of a SELECT are sent; ``found`` counts all.  ``waits``: the seconds after which time
    alone may bring more matches.  ``done``: nothing more follows for the message being answered.  ``ended``: which of
    many queries were ended because of their matches, and why.  ``unseen``: what the program asks for and no event has
    had so far, where that was looked at.
    """

    taken: int
    found: int
    matches: list[Found]
    goals: int
    waits: float | None
    done: bool
    ended: dict[str, str]
    unseen: list[str] | None = None


class Copied(Message, frozen=True, tag=True):
    """A copy of the process answers the question."""


class Explained(Message, frozen=True, tag=True):
    """An explanation as JSON."""

    why: bytes


class GraphRead(Message, frozen=True, tag=True):
    graph: ReceivedGraph


class RowsRead(Message, frozen=True, tag=True):
    """The graphs in the order of their rows, and what was left out of the rows, each a text for the user."""

    graphs: list[ReceivedGraph]
    warnings: list[str]


class PatchRead(Message, frozen=True, tag=True):
    """Operations whose blank nodes begin with ``blank``."""

    operations: tuple[Operation, ...]
    blank: str


TO_NURSERY = msgspec.msgpack.Decoder(Setup | Fork | Kill)
FROM_NURSERY = msgspec.msgpack.Decoder(Ready | Forked | Ended)
TO_PROCESS = msgspec.msgpack.Decoder(
    Compile | Add | Remove | Push | Idle | Why | WhyNot | ReadGraph | ReadRows | ReadPatch
)
FROM_PROCESS = msgspec.msgpack.Decoder(
    Compiled | Added | Refused | Failed | Step | Copied | Explained | GraphRead | RowsRead | PatchRead
)
