"""Query forms, solution modifiers, the document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..ast import (
    Ask,
    Combined,
    Construct,
    DatasetClause,
    Describe,
    Document,
    Duration,
    EventDeclaration,
    Form,
    Group,
    OrderKey,
    Projection,
    Query,
    Register,
    ReportClause,
    Select,
    SeqNot,
    SeqOptional,
    Span,
    Term,
    TriplePattern,
    Triples,
    Within,
)
from ..lexing import Token
from ..scope import aggregates
from .facts import FactBuilder
from .patterns import POLICIES

_DIALECTS = ("rsep-ql", "sparqlstream", "c-sparql", "cqels", "rsp-ql")


class QueryBuilder(FactBuilder):
    # --- parts of a query ---

    def modifier(self, args: list[Any], start: int, end: int) -> str:
        return str(args[0].text.upper())

    stream_operator = modifier

    def select_list(self, args: list[Any], start: int, end: int) -> tuple[Projection, ...]:
        return tuple(args)

    def select(self, args: list[Any], start: int, end: int) -> tuple[Select, str]:
        operator, modifier, projections = args
        return Select(projections, modifier or "", span=Span(start, end)), operator or ""

    def select_late(self, args: list[Any], start: int, end: int) -> tuple[Select, str]:
        modifier, operator, projections = args
        return Select(projections, modifier, span=Span(start, end)), operator

    def projected_variable(self, args: list[Any], start: int, end: int) -> Projection:
        return Projection(args[0], span=Span(start, end))

    def projected_expression(self, args: list[Any], start: int, end: int) -> Projection:
        return Projection(args[1], args[0], span=Span(start, end))

    def describe_subjects(self, args: list[Any], start: int, end: int) -> tuple[Any, ...]:
        return tuple(Term(a, span=Span(start, end)) if isinstance(a, str) else a for a in args)

    def template(self, args: list[Any], start: int, end: int) -> tuple[TriplePattern, ...]:
        patterns = args[0].patterns if args[0] is not None else ()
        self.no_paths(patterns, "a CONSTRUCT template")
        return patterns

    bare_template = template

    def at_end(self, args: list[Any], start: int, end: int) -> bool:
        return True

    def group_by(self, args: list[Any], start: int, end: int) -> tuple[Any, ...]:
        return tuple(args)

    def group_key(self, args: list[Any], start: int, end: int) -> Any:
        return args[0]

    def group_key_as(self, args: list[Any], start: int, end: int) -> Projection:
        return Projection(args[1], args[0], span=Span(start, end))

    def having(self, args: list[Any], start: int, end: int) -> tuple[Any, ...]:
        return tuple(args)

    order_by = having

    def order_key(self, args: list[Any], start: int, end: int) -> OrderKey:
        return OrderKey(args[0], span=Span(start, end))

    def order_key_descending(self, args: list[Any], start: int, end: int) -> OrderKey:
        return OrderKey(args[0], True, span=Span(start, end))

    def limit(self, args: list[Any], start: int, end: int) -> int:
        return self.natural(args[0])

    offset = limit

    def limits(self, args: list[Any], start: int, end: int) -> tuple[int | None, int | None]:
        return args[0], args[1]

    def limits_reversed(self, args: list[Any], start: int, end: int) -> tuple[int | None, int | None]:
        return args[1], args[0]

    def policy(self, args: list[Any], start: int, end: int) -> tuple[str, Span]:
        token: Token = args[0]
        name = token.text.lower()
        if name not in POLICIES:
            self.fail(
                f"'{token.text}' is no consumption policy",
                token.start,
                token.end,
                code="policy",
                hint="unrestricted, chronological or recent",
            )
        return name, Span(start, end)

    def tail(self, args: list[Any], start: int, end: int) -> dict[str, Any]:
        group_by, having, order_by, limits, values, policy = args
        limit, offset = limits or (None, None)
        return {
            "group_by": group_by or (),
            "having": having or (),
            "order_by": order_by or (),
            "limit": limit,
            "offset": offset,
            "values": values,
            "policy": policy,
        }

    def where(self, args: list[Any], start: int, end: int) -> dict[str, Any]:
        """The WHERE clause; one without outer braces (as [EP] prints it) gets a group of its own.

        A WITHIN at its very end is the query's, not the last group's: it bounds the whole match, or the window over the
        solutions of a query with aggregates.
        """
        chain, *outside, within, policy = args
        lifted = None
        if not outside and within is None:
            chain, within = self._lift_within(chain)
            lifted = within if isinstance(chain, Combined | SeqNot | SeqOptional) else None
        if isinstance(chain, Group) and not outside:
            group = chain
        else:
            stop = outside[-1].span.end if outside else chain.span.end
            group = Group((chain, *outside), span=Span(chain.span.start, stop))
        twice = chain.bound if isinstance(chain, Within) and within is not None else None
        return {"where": group, "within": within, "lifted": lifted, "twice": twice, "policy": policy}

    def _lift_within(self, chain: Any) -> tuple[Any, Duration | None]:
        if isinstance(chain, Within):
            return chain.pattern, chain.bound
        if isinstance(chain, Combined) or (isinstance(chain, SeqNot | SeqOptional) and chain.right is not None):
            right, bound = self._lift_within(chain.right)
            return replace(chain, right=right), bound
        return chain, None

    def _warn_of_window(self, where: dict[str, Any], form: Form, parts: dict[str, Any]) -> None:
        """Warn of a WITHIN after the last group of a query with aggregates: another bound may have been meant."""
        shown = form.projections if isinstance(form, Select) else ()
        computed = [*(p.expression for p in shown), *(k.expression for k in parts["order_by"])]
        if not (parts["group_by"] or parts["having"] or any(a for e in computed for a in aggregates(e))):
            return
        if (bound := where["twice"]) is not None:
            self.warn(
                "this WITHIN bounds the duration of each solution; only the last one is a sliding window over them",
                bound.span.start,
                bound.span.end,
                code="within",
                hint="a query has one window: leave this out, or put braces around the group and it if the duration "
                "is meant, WHERE { {A} WITHIN n } WITHIN m",
            )
        if (bound := where["lifted"]) is not None:
            self.warn(
                "this WITHIN ends the WHERE clause, so it is a sliding window over the solutions",
                bound.span.start,
                bound.span.end,
                code="within",
                hint="to bound the duration instead, put braces around the pattern: WHERE { {A} SEQ {B} WITHIN n }"
                " for the last group, WHERE { { {A} SEQ {B} } WITHIN n } for the whole",
            )

    # --- query forms ---

    def _query(
        self,
        form: Form,
        clauses: list[Any],
        where: dict[str, Any] | None,
        tail: dict[str, Any],
        r2s: str,
        start: int,
        end: int,
    ) -> Query:
        parts = dict(tail)
        policy, within, group = parts.pop("policy"), None, None
        if where is not None:
            group, within = where["where"], where["within"]
            self._warn_of_window(where, form, parts)
            if policy and where["policy"]:
                self.fail("the policy is given twice", policy[1].start, policy[1].end, code="policy")
            policy = policy or where["policy"]
        dialect = next((d for d in _DIALECTS if d in self.dialects), "")
        self.dialects.clear()
        reports = [c for c in clauses if isinstance(c, ReportClause)]
        if len(reports) > 1:
            self.fail("REPORT is written twice", reports[1].span.start, reports[1].span.end)
        return Query(
            form,
            group,
            dataset=tuple(c for c in clauses if isinstance(c, DatasetClause)),
            events=tuple(c for c in clauses if isinstance(c, EventDeclaration)),
            report=reports[0] if reports else None,
            within=within,
            policy=policy[0] if policy else "",
            r2s=r2s,
            dialect=dialect,
            span=Span(start, end),
            **parts,
        )

    def select_query(self, args: list[Any], start: int, end: int) -> Query:
        (select, r2s), *clauses, where, tail = args
        return self._query(select, clauses, where, tail, r2s, start, end)

    def sub_select(self, args: list[Any], start: int, end: int) -> Group:
        select, where, tail = args
        outer, self.dialects = set(self.dialects), set()  # dialects are recognised over the whole query
        inner = self.select_query([select, where, tail], select[0].span.start, end - 1)
        self.dialects = outer
        return Group((inner,), span=Span(start, end))

    def construct_query(self, args: list[Any], start: int, end: int) -> Query:
        r2s, template, at_end, *clauses, where, tail = args
        form = Construct(template, bool(at_end), span=Span(start, end))
        return self._query(form, clauses, where, tail, r2s or "", start, end)

    def construct_where(self, args: list[Any], start: int, end: int) -> Query:
        r2s, at_end, *clauses, triples, tail = args
        if triples is not None:
            self.no_paths(triples.patterns, "CONSTRUCT WHERE")
        elements: tuple[Triples, ...] = (triples,) if triples is not None else ()
        span = triples.span if triples is not None else Span(start, end)
        where = {"where": Group(elements, span=span), "within": None, "lifted": None, "twice": None, "policy": None}
        form = Construct(None, bool(at_end), span=Span(start, end))
        return self._query(form, clauses, where, tail, r2s or "", start, end)

    def ask_query(self, args: list[Any], start: int, end: int) -> Query:
        r2s, *clauses, where, tail = args
        return self._query(Ask(span=Span(start, end)), clauses, where, tail, r2s or "", start, end)

    def describe_query(self, args: list[Any], start: int, end: int) -> Query:
        r2s, subjects, *clauses, where, tail = args
        return self._query(Describe(subjects, span=Span(start, end)), clauses, where, tail, r2s or "", start, end)


class SyntaxBuilder(QueryBuilder):
    """The methods of the grammar rules above a query."""

    def query_name(self, args: list[Any], start: int, end: int) -> Token:
        return args[0]  # type: ignore[no-any-return]

    def register_query(self, args: list[Any], start: int, end: int) -> tuple[Register, str]:
        token, every = args
        name = token.text if token.type == "NAME" else self.iri_of(token)
        return Register("QUERY", name, every, span=Span(start, end)), ""

    def register_stream(self, args: list[Any], start: int, end: int) -> tuple[Register, str]:
        token, every = args
        return Register("STREAM", self.iri_of(token), every, span=Span(start, end)), ""

    def register_operator(self, args: list[Any], start: int, end: int) -> tuple[Register, str]:
        operator, token, every = args
        return Register("STREAM", self.iri_of(token), every, span=Span(start, end)), operator

    def registered_query(self, args: list[Any], start: int, end: int) -> Query:
        register: Register
        query: Query
        (register, operator), *_, query = args
        if operator and query.r2s and operator != query.r2s:
            self.fail(f"the query is registered as {operator} but selects {query.r2s}", start, register.span.end)
        return replace(query, register=register, r2s=query.r2s or operator, span=Span(start, end))

    def document(self, args: list[Any], start: int, end: int) -> Document:
        queries = tuple(a for a in args if isinstance(a, Query))
        return Document(
            queries,
            self.base,
            tuple(self.prefixes.items()),
            warnings=tuple(self.warnings),
            text=self.source,
            span=Span(start, end),
        )
