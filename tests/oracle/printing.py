"""Drawn queries as text: what a failing example shows, and what a compiler that starts from text is given."""

from __future__ import annotations

from etalis_compiler import ast
from etalis_rules.terms import literal


def program(document: ast.Document) -> str:
    return "\n".join(query(q) + (" ;" if len(document.queries) > 1 else "") for q in document.queries)


def query(q: ast.Query) -> str:
    """A query without a prologue: every IRI is written in full."""
    text = f"REGISTER {q.register.kind} {q.register.name} AS " if q.register else ""
    text += f"{_form(q.form)} WHERE {group(q.where or ast.Group(()))}"
    if q.within:
        text += f" WITHIN {_duration(q.within)}"
    if q.group_by:
        text += " GROUP BY " + " ".join(_key(k) for k in q.group_by)
    if q.having:
        text += " HAVING " + " ".join(f"({expression(h)})" for h in q.having)
    if q.order_by:
        ways = (("DESC" if k.descending else "ASC", expression(k.expression)) for k in q.order_by)
        text += " ORDER BY " + " ".join(f"{way}({key})" for way, key in ways)
    if q.limit is not None:
        text += f" LIMIT {q.limit}"
    if q.offset is not None:
        text += f" OFFSET {q.offset}"
    return text


def _form(form: ast.Form) -> str:
    match form:
        case ast.Select(projections, modifier):
            shown = " ".join(_projection(p) for p in projections) or "*"
            return f"SELECT {modifier + ' ' if modifier else ''}{shown}"
        case ast.Construct(template, at_end) if template is not None:
            return "CONSTRUCT { " + " . ".join(_triple(t) for t in template) + (" } AT END" if at_end else " }")
        case ast.Ask():
            return "ASK"
    raise TypeError(f"not drawn: {form!r}")


def _projection(p: ast.Projection) -> str:
    return f"({expression(p.expression)} AS ?{p.variable.name})" if p.expression else f"?{p.variable.name}"


def _key(key: ast.Projection | ast.Expression) -> str:
    if isinstance(key, ast.Projection):
        return _projection(key)
    return expression(key) if isinstance(key, ast.Var) else f"({expression(key)})"


def _duration(d: ast.Duration) -> str:
    return d.lexical if d.kind == "duration" else f"{d.count} {d.kind}"


def group(g: ast.Group) -> str:
    text = "{"
    for element in g.elements:
        # A full stop ends the variables of BY, where the next word is one, too.
        text += " . " if isinstance(element, ast.Triples) and text.split()[-1].startswith("?") else " "
        text += _element(element)
    return text + " }"


def _element(e: ast.Element) -> str:
    match e:
        case ast.Triples(patterns):
            return "".join(f"{_triple(p)} . " for p in patterns)
        case ast.Filter(condition):
            return f"FILTER ({expression(condition)})"
        case ast.Bind(value, variable):
            return f"BIND ({expression(value)} AS ?{variable.name})"
        case ast.Values(variables, rows):
            names = " ".join(f"?{v.name}" for v in variables)
            lines = " ".join("(" + " ".join(t.spelling if t else "UNDEF" for t in row) + ")" for row in rows)
            return f"VALUES ({names}) {{ {lines} }}"
        case ast.Optional(inner):
            return f"OPTIONAL {group(inner)}"
        case ast.Minus(inner):
            return f"MINUS {group(inner)}"
        case ast.GraphGroup(name, inner):
            return f"GRAPH {node(name)} {group(inner)}"
        case ast.StreamGroup(name, inner):
            return f"STREAM {node(name)} {group(inner)}"
        case ast.EventGroup(inner, name):
            return f"EVENT {group(inner)}" if name is None else f"EVENT {node(name)} {group(inner)}"
        case ast.Combined(operator, left, right):
            return f"{_element(left)} {operator.value} {_element(right)}"
        case ast.Within(pattern, bound):
            return f"{_element(pattern)} WITHIN {_duration(bound)}"
        case ast.SeqNot(left, absent, None, bound) if bound is not None:
            return f"{_element(left)} SEQ NOT {_element(absent)} WITHIN {_duration(bound)}"
        case ast.SeqNot(left, absent, right) if right is not None:
            return f"{_element(left)} SEQ NOT {_element(absent)} SEQ {_element(right)}"
        case ast.SeqOptional(left, parts, right, bound):
            optional = " ".join(f"SEQ OPTIONAL {_element(part)}" for part in parts)
            end = f"WITHIN {_duration(bound)}" if bound is not None else f"SEQ {_element(right)}"
            return f"{_element(left)} {optional} {end}"
        case ast.Repeat():
            return _repeat(e)
        case ast.Skip():
            return _skip(e)
        case ast.Start():
            return "{ START }"
        case ast.Group():
            return group(e)
        case ast.Query():
            return query(e)
    raise TypeError(f"not drawn: {e!r}")


def _repeat(r: ast.Repeat) -> str:
    most = " OR MORE" if r.most is None else f" TO {r.most}"
    text = f"{_element(r.pattern)} REPEAT {r.least}{most}"
    text += " BY " + " ".join(f"?{v.name}" for v in r.by) if r.by else ""
    text += f" WHERE ({expression(r.condition)})" if r.condition else ""
    text += f" NOT {_element(r.absent)}" if r.absent else ""
    text += f" GAP {_duration(r.gap)}" if r.gap else ""
    text += " LONGEST" if r.longest else " MAXIMAL" if r.maximal else ""
    text += f" UNTIL {_element(r.until)}" if r.until else ""
    columns = (f"{expression(c.expression)} AS ?{c.variable.name}" for c in r.columns if c.expression)
    return f"{text} AS ({', '.join(columns)})" if r.columns else text


def _skip(s: ast.Skip) -> str:
    words = [_element(s.pattern), "SKIP" if s.after else "", s.kind, f"({expression(s.after)})" if s.after else ""]
    words += [_duration(s.length) if s.length else "", " ".join(("BY", *(f"?{v.name}" for v in s.by))) if s.by else ""]
    return " ".join(filter(None, words))


def node(n: ast.Node) -> str:
    match n:
        case ast.Var(name):
            return f"?{name}"
        case ast.Term(spelling):
            return spelling
        case ast.Blank(label):
            return f"_:{label}"
        case ast.TripleTerm(s, p, o):
            return f"<<( {node(s)} {node(p)} {node(o)} )>>"


def _triple(t: ast.TriplePattern) -> str:
    predicate = node(t.predicate) if isinstance(t.predicate, (ast.Var, ast.Term)) else path(t.predicate)
    return f"{node(t.subject)} {predicate} {node(t.object)}"


def path(p: ast.Path) -> str:
    match p:
        case ast.PathIri(iri):
            return iri
        case ast.PathInverse(inner):
            return f"^({path(inner)})"
        case ast.PathSequence(parts):
            return "(" + "/".join(path(x) for x in parts) + ")"
        case ast.PathAlternative(parts):
            return "(" + "|".join(path(x) for x in parts) + ")"
        case ast.PathRepeat(inner, mark):
            return f"({path(inner)}){mark}"
        case ast.PathNegated(forward, inverse):
            return "!(" + "|".join([*forward, *(f"^{i}" for i in inverse)]) + ")"


def expression(e: ast.Expression) -> str:
    match e:
        case ast.Var() | ast.Term():
            return node(e)
        case ast.Unary(operator, operand):
            return f"{operator}({expression(operand)})"
        case ast.Binary(operator, left, right):
            return f"({expression(left)} {operator} {expression(right)})"
        case ast.In(operand, choices, negated):
            listed = ", ".join(expression(c) for c in choices)
            return f"({expression(operand)} {'NOT ' if negated else ''}IN ({listed}))"
        case ast.Call("PREVIOUS", (variable, ast.Term(back))):
            number = back.split('"')[1]  # as it is written, not as a literal
            return f"PREVIOUS({expression(variable)}, {number})"
        case ast.Call(name, arguments):
            return f"{name}({', '.join(expression(a) for a in arguments)})"
        case ast.FunctionCall(iri, arguments):
            return f"{iri}({', '.join(expression(a) for a in arguments)})"
        case ast.Exists(inner, negated):
            return f"{'NOT ' if negated else ''}EXISTS {group(inner)}"
        case ast.Aggregate(name, operand, distinct, separator):
            inside = "*" if operand is None else expression(operand)
            tail = f"; SEPARATOR={literal(separator)}" if separator is not None else ""
            return f"{name}({'DISTINCT ' if distinct else ''}{inside}{tail})"
    raise TypeError(f"not drawn: {e!r}")
