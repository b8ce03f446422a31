"""Whole queries as lines of text."""

from __future__ import annotations

from ..ast import (
    Ask,
    Call,
    Construct,
    DatasetClause,
    Describe,
    Exists,
    Fact,
    FunctionCall,
    Projection,
    Query,
    Register,
    ReportClause,
    Select,
    Var,
)
from .patterns import PatternPrinter, indented, led

_REPORTS = {"WC": "WINDOW CLOSE", "CC": "CONTENT CHANGE", "NC": "NON-EMPTY CONTENT"}


class QueryPrinter(PatternPrinter):
    def query(self, query: Query) -> list[str]:
        lines = self._register(query.register) if query.register is not None else []
        lines += self._form(query)
        lines += [self._dataset(clause) for clause in query.dataset]
        if query.report is not None:
            lines.append(self._report(query.report))
        for event in query.events:
            lines += self.element(event)
        shorthand = isinstance(query.form, Construct) and query.form.template is None
        if query.where is not None:
            lines += led("WHERE", self.group(query.where))
        elif shorthand:
            lines.append("WHERE {}")
        if query.within is not None:
            lines.append(f"WITHIN {self.duration(query.within)}")
        return lines + self._tail(query)

    def _register(self, register: Register) -> list[str]:
        name = self.iri(register.name) if register.name.startswith("<") else register.name
        every = f" COMPUTED EVERY {self.duration(register.every)}" if register.every is not None else ""
        return [f"REGISTER {register.kind} {name}{every} AS"]

    def _form(self, query: Query) -> list[str]:
        r2s = f" {query.r2s}" if query.r2s else ""
        match query.form:
            case Select(projections=projections, modifier=modifier):
                columns = " ".join(self._projection(p) for p in projections) or "*"
                return [f"SELECT{r2s}{' ' + modifier if modifier else ''} {columns}"]
            case Construct(template, at_end):
                end = " AT END" if at_end else ""
                if template is None:
                    return [f"CONSTRUCT{r2s}{end}"]
                triples = [self.triple(p) + " ." for p in template]
                if len(triples) <= 1:
                    return [f"CONSTRUCT{r2s} {{ {' '.join(triples)} }}{end}"]
                return [f"CONSTRUCT{r2s} {{", *indented(triples), f"}}{end}"]
            case Fact(template, since, till):
                spelled = " ".join(self.triple(p) + " ." for p in template)
                parts = [(word, group) for word, groups in (("SINCE", since), ("TILL", till)) for group in groups]
                lines = [line for word, group in parts for line in [f"({word}", *indented(self.group(group)), ")"]]
                return [f"CONSTRUCT FACT {{ {spelled} }}", "(UNION", *indented(lines), ")"]
            case Ask():
                return [f"ASK{r2s}"]
            case Describe(subjects=subjects):
                return [f"DESCRIBE{r2s} {' '.join(self.node(s) for s in subjects) or '*'}"]

    def _projection(self, projection: Projection) -> str:
        if projection.expression is None:
            return f"?{projection.variable.name}"
        return f"({self.expression(projection.expression)} AS ?{projection.variable.name})"

    def _dataset(self, clause: DatasetClause) -> str:
        head = "FROM NAMED" if clause.named else "FROM"
        window = f" {self.window(clause.window)}" if clause.window is not None else ""
        if clause.kind == "graph":
            rescan = f" [RESCAN {self.duration(clause.rescan)}]" if clause.rescan is not None else ""
            return f"{head} {self.node(clause.iri)}{rescan}"
        if clause.kind == "stream":
            return f"{head} STREAM {self.node(clause.iri)}{window}"
        over = f"WINDOW {self.iri(clause.nested)}" if clause.nested else self.node(clause.source or clause.iri)
        return f"{head} WINDOW {self.node(clause.iri)} ON {over}{window}"

    def _report(self, report: ReportClause) -> str:
        items: list[str] = []
        for item in report.items:
            if item.kind == "P" and item.period is not None:
                items.append(f"PERIODIC {self.duration(item.period)}")
            elif item.kind == "AT":
                items.append(f"AT ({', '.join(self.expression(t) for t in item.times)})")
            else:
                of = "" if item.window is None else f" OF {self.node(item.window)}"
                items.append(_REPORTS[item.kind] + of)
        return f"REPORT ON {' AND '.join(items)}"

    def _tail(self, query: Query) -> list[str]:
        lines: list[str] = []
        if query.group_by:
            lines.append("GROUP BY " + " ".join(self._key(k) for k in query.group_by))
        if query.having:
            lines.append("HAVING " + " ".join(f"({self.expression(e)})" for e in query.having))
        if query.order_by:
            keys = (f"{'DESC' if k.descending else 'ASC'}({self.expression(k.expression)})" for k in query.order_by)
            lines.append("ORDER BY " + " ".join(keys))
        if query.limit is not None:
            lines.append(f"LIMIT {query.limit}")
        if query.offset is not None:
            lines.append(f"OFFSET {query.offset}")
        if query.values is not None:
            lines += self.values(query.values)
        if query.policy:
            lines.append(f"USING POLICY {query.policy}")
        return lines

    def _key(self, key: object) -> str:
        match key:
            case Projection():
                return self._projection(key)
            case Var() | Call() | FunctionCall() | Exists():
                return self.expression(key)
            case _:
                return f"({self.expression(key)})"  # type: ignore[arg-type]
