"""Programs: compiled queries, as a user holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from etalis_compiler.check import check
from etalis_compiler.diagnostics import Diagnostic, Source
from etalis_compiler.explain import Explanation, explain, prefixes_of
from etalis_compiler.knowledge import NO_KNOWLEDGE, KnowledgeSummary
from etalis_compiler.pipeline import POLICIES, Compilation, compile_sources, rules_of
from etalis_compiler.rewrites.reorder import coupling
from etalis_rules import program as ir


@dataclass(frozen=True, slots=True, repr=False)
class Program:
    """One or more queries and rules that run together.

    ``policy`` holds for the queries that name none themselves (``USING POLICY recent``).
    """

    compilation: Compilation
    policy: str = "unrestricted"

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries, which their matches carry."""
        return tuple(q.name for q in self.compilation.queries)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return self.compilation.warnings

    def rules(self, knowledge: KnowledgeSummary = NO_KNOWLEDGE) -> ir.Rules:
        """The event-driven backward-chaining rules."""
        return rules_of(self.compilation, knowledge, self.policy)

    def explain(self, knowledge: KnowledgeSummary = NO_KNOWLEDGE) -> Explanation:
        """The plans, the rules in the notation of [EP] §5, and what follows from them; ``str()`` is the text."""
        return explain(self.rules(knowledge), prefixes_of(self.compilation))

    def check(self, knowledge: KnowledgeSummary = NO_KNOWLEDGE) -> tuple[Diagnostic, ...]:
        """What is doubtful in the program: unbounded state, cross products, what can never hold, and the like."""
        return check(self.compilation, knowledge, self.policy)

    def __repr__(self) -> str:
        return str(self.explain())

    def _repr_html_(self) -> str:
        from etalis_py.notebook import program_html  # notebooks only

        return program_html(self.rules(), prefixes_of(self.compilation))


def compile(  # the verb that the reader expects, as in ``re.compile``
    source: str | Path | Iterable[str | Path],
    *,
    policy: str = "unrestricted",
    base: str = "",
    prefixes: Mapping[str, str] | None = None,
    order: str = "",
    rates: Mapping[str, float] | None = None,
) -> Program:
    """Make a program of query texts or files; several form one program.

    Where nothing is consumed, chains of SEQ and AND are coupled as written (``order="left"``), from the right
    (``"right"``), or so that the fewest goals are made (``"cost"``), by the ``rates`` of predicates, events per second.
    A string with a line break, a space or a brace is a query, any other names a file.  Raises ``QueryError`` for a
    query that cannot be used.

    >>> compile("SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :p ?y }").queries
    ('q1',)
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}: use one of {', '.join(POLICIES)}")
    items = [source] if isinstance(source, (str, Path)) else list(source)
    compilation = compile_sources(
        map(source_of, items), base=base, prefixes=dict(prefixes or {}), coupling=coupling(order, rates)
    )
    program = Program(compilation, policy)
    program.rules()
    return program


def source_of(item: str | Path) -> Source:
    """The text of a query, or of the file of that name."""
    if isinstance(item, str) and (not item.strip() or any(c in item for c in "\n {")):
        return Source(item)
    path = Path(item)
    try:
        return Source(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no query file {path}; a query text must contain a brace") from None
