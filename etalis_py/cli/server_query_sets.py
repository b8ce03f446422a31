"""Programs of many queries inside a server: queries of several clients come and go while events are pushed."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from etalis_compiler.diagnostics import Source
from etalis_rules import algebra as alg

from etalis_py.cli.server_census import StandingCensus
from etalis_py.cli.side_by_side import Engines
from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program, compile, family_of
from etalis_py.events.clock import render_datetime
from etalis_py.knowledge import Knowledge

_PREPARED = 256

Prepared = tuple[Program, Engine | None]


class Queries:
    """Many queries in few engines, each with a name.

    None of them may affect the matches of another, so a CONSTRUCT is refused: all queries would read its triples.  A
    query of a new kind is compiled in a thread, while the engines take events, and joins them when it is ready.
    """

    def __init__(self, background: Knowledge | None, policy: str) -> None:
        self.engines = Engines(lambda: Engine(background=background, policy=policy, render=render_datetime))
        self.census = StandingCensus()
        self._policy = policy
        self._compiler = ThreadPoolExecutor(1, "compile")
        self._prepared: dict[tuple[str, str], Future[Prepared]] = {}

    def knows(self, query: str) -> bool:
        return self.engines.kin(_text_of("", query)) is not None

    def prepare(self, name: str, query: str, size: int) -> None:
        """Begin to compile a query beside the others; ``size`` is the number of its rules and goals."""
        if (name, query) in self._prepared:
            return
        if len(self._prepared) >= _PREPARED:  # what is ready and was not taken is of clients that have gone
            waiting = {key: prepared for key, prepared in self._prepared.items() if not prepared.done()}
            self._prepared = waiting
        alone = self.engines.roomy(size) is None
        self._prepared[name, query] = self._compiler.submit(self._made, name, query, alone)

    def is_ready(self, name: str, query: str) -> bool:
        """Whether adding the query needs no compiling."""
        prepared = self._prepared.get((name, query))
        return self.knows(query) or (prepared is not None and prepared.done())

    def _made(self, name: str, query: str, alone: bool) -> Prepared:
        text = _text_of(name, query)
        program = family_of(text, self._policy) or compile(text, policy=self._policy)
        _check_standing(program, text)
        program.rules()
        return program, self.engines.made_for(program, name) if alone else None

    def add(self, name: str, query: str) -> None:
        """Run a query, and take note of what it asks for."""
        self._run(name, query)
        engine = self.engines.holder(name)
        assert engine is not None
        self.census.add(name, engine.programs[name])

    def _run(self, name: str, query: str) -> None:
        text = _text_of(name, query)
        prepared = self._prepared.pop((name, query), None)
        kin = self.engines.kin(text)
        if kin is not None:
            if kin is self.engines.holder(name):
                kin.remove(name)
            else:
                self.engines.remove(name)
            kin.add(text, name=name)
            return
        program, engine = prepared.result() if prepared is not None else self._made(name, query, False)
        self.engines.remove(name)
        roomy = self.engines.roomy(len(program.rules().nodes))
        if engine is None and roomy is not None:
            roomy.add(program, name=name)
        else:
            self.engines.join(engine or self.engines.made_for(program, name))

    def remove(self, name: str) -> None:
        self.census.remove(name)
        self.engines.remove(name)

    def rules(self) -> int:
        return self.engines.rules()

    def close(self) -> None:
        self._compiler.shutdown(cancel_futures=True)
        self.engines.close()


def _text_of(name: str, query: str) -> Source:
    """A text whose query gets this name; a line break at its end does not change the wording."""
    return Source(query.rstrip(), f"{name}.rq", named=True)


def _check_standing(program: Program, text: Source) -> None:
    """Refuse a program that cannot be one of many queries."""
    queries = [query for document, _ in program.documents for query in document.queries]
    if program.windowed:
        found, reason = "windows", "they would be evaluated with those of all other queries"
    elif len(queries) != 1:
        found, reason = f"{len(queries)} queries in one text", "each query has an address of its own"
    elif queries[0].register is not None:
        found, reason = "REGISTER", "the query is named by its address"
    elif queries[0].dataset:
        found, reason = "FROM", "all queries of the program have one background"
    elif queries[0].kind not in ("select", "ask", "describe"):
        found, reason = "CONSTRUCT", "other queries would read what it derives"
    elif any(alg.has_start(query.algebra.pattern) for query in program.compilation.queries):
        found, reason = "START", "its queries come and go, and the stream began before most of them"
    else:
        return
    raise text.error(
        "standing",
        f"a program of many queries does not take {found}: {reason}",
        0,
        1,
        hint=f"leave {found} out" if found in ("REGISTER", "FROM") else "register it as a program of its own",
    )
