"""The spellings of the text formats that ``benchmarks.files --spellings`` reads: the same prices in many ways.

A spelling is written ten events at a time, because some shapes take several (pieces of graphs, times ahead of them).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from etalis_rules.terms import XSD

from etalis_py.streams import render_datetime

PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
TEN = 10
_BEGIN = 1_767_225_600_000_000


@dataclass(frozen=True, slots=True)
class Spelling:
    """``write`` gives the text of the events from ``first`` to ``first + TEN``; ``head`` is written once."""

    format: str
    name: str
    write: Callable[[int], str]
    options: dict[str, Any] = field(default_factory=dict)
    head: str = ""

    def text(self, size: int) -> tuple[str, int]:
        """A text of about this many bytes, and how many events it has."""
        parts, length, first = [self.head], 0, 0
        while length < size:
            part = self.write(first)
            parts.append(part)
            length += len(part)
            first += TEN
        return "".join(parts), first


def moment(n: int) -> str:
    return render_datetime(_BEGIN + 250_000 * n)


def _time(n: int, literal: str = '"{}"^^xsd:dateTime', predicate: str = PROV, graph: str = "") -> str:
    spelled = literal.format(moment(n), moment(n)[:-1], moment(n + 7)).replace("xsd:", f"<{XSD}", 1)
    closed = f"{spelled}>" if f"<{XSD}" in spelled else spelled
    return f"{graph or f'<urn:g:{n}>'} {predicate} {closed} .\n"


def _quad(n: int, obj: str = "", subject: str = "", graph: str = "") -> str:
    obj = obj or f'"{n % 977}.5"^^<{XSD}double>'
    return f"{subject or f'<urn:c:{n % 50}>'} <urn:p:price> {obj} {graph or f'<urn:g:{n}>'} .\n"


def _each(line: Callable[[int], str]) -> Callable[[int], str]:
    return lambda first: "".join(map(line, range(first, first + TEN)))


def _quads(name: str, line: Callable[[int], str], **options: Any) -> Spelling:
    return Spelling("nq", name, _each(line), options)


def _pieces(first: int) -> str:
    """Ten graphs in two pieces each, in turn, with their times ahead."""
    numbers = range(first, first + TEN, 2)
    return "".join([_time(n) for n in numbers] + [_quad(n, f'"{k}"') for k in range(2) for n in numbers])


def _ahead(first: int) -> str:
    numbers = range(first, first + TEN)
    return "".join([*map(_time, numbers), *map(_quad, numbers)])


def _around(n: int, size: int) -> str:
    quads = [_quad(n, f'"{k}"') for k in range(size)]
    return "".join([*quads[: size // 2], _time(n), *quads[size // 2 :]])


_OTHER = "<http://www.w3.org/ns/sosa/resultTime>"
_START, _END = "<urn:p:from>", "<urn:p:to>"

NQUADS = [
    _quads("time after", lambda n: _quad(n) + _time(n)),
    _quads("time before", lambda n: _time(n) + _quad(n)),
    _quads("+00:00", lambda n: _quad(n) + _time(n, '"{1}+00:00"^^xsd:dateTime')),
    _quads("no zone", lambda n: _quad(n) + _time(n, '"{1}"^^xsd:dateTime')),
    _quads("dateTimeStamp", lambda n: _quad(n) + _time(n, '"{}"^^xsd:dateTimeStamp')),
    _quads("integers", lambda n: _quad(n) + f'<urn:g:{n}> {PROV} "{n}"^^<{XSD}integer> .\n'),
    _quads("decimals", lambda n: _quad(n) + f'<urn:g:{n}> {PROV} "{n}.25"^^<{XSD}decimal> .\n'),
    _quads("interval", lambda n: _quad(n) + _time(n, '"{0}/{2}"')),
    _quads("start and duration", lambda n: _quad(n) + _time(n, '"{0}/PT5S"')),
    _quads(
        "start, end",
        lambda n: _quad(n) + _time(n, predicate=_START) + _time(n + 5, predicate=_END, graph=f"<urn:g:{n}>"),
        start_predicate=_START,
        end_predicate=_END,
    ),
    _quads("another predicate", lambda n: _quad(n) + _time(n, predicate=_OTHER), time_predicate=_OTHER),
    _quads("two predicates", lambda n: _quad(n) + _time(n) + _time(n, predicate=_OTHER), time_predicate=[_OTHER, PROV]),
    _quads("time inside", lambda n: _quad(n) + _quad(n, f'"{moment(n)}"').replace("<urn:p:price>", PROV)),
    _quads("more about it", lambda n: _quad(n) + _time(n) + f'<urn:g:{n}> <urn:p:note> "seen" .\n'),
    _quads("comments", lambda n: "# a price\n" + _quad(n) + _time(n)),
    _quads("comments at the end", lambda n: _quad(n)[:-1] + " # a price\n" + _time(n)),
    _quads("blank lines", lambda n: _quad(n) + _time(n) + "\n"),
    _quads("tabs", lambda n: (_quad(n) + _time(n)).replace(" ", "\t")),
    _quads("no gap", lambda n: (_quad(n) + _time(n)).replace("> <", "><").replace(" .", ".")),
    _quads("CRLF", lambda n: (_quad(n) + _time(n)).replace("\n", "\r\n")),
    _quads("language tags", lambda n: _quad(n, f'"{n}"@en') + _time(n)),
    _quads("en-GB", lambda n: _quad(n, f'"{n}"@en-GB') + _time(n)),
    _quads("xsd:string", lambda n: _quad(n, f'"{n}"^^<{XSD}string>') + _time(n)),
    _quads("escapes", lambda n: _quad(n, f'"a \\"{n}\\" \\n b"') + _time(n)),
    _quads("\\u escapes", lambda n: _quad(n, f'"caf\\u00e9 {n}"') + _time(n)),
    _quads("UTF-8", lambda n: _quad(n, f'"café {n}"') + _time(n)),
    _quads("UTF-8 IRIs", lambda n: _quad(n, subject=f"<urn:café:{n % 50}>") + _time(n)),
    _quads("blank nodes", lambda n: _quad(n, subject=f"_:c{n % 50}") + _time(n)),
    _quads("blank graphs", lambda n: _quad(n, graph=f"_:g{n}") + _time(n, graph=f"_:g{n}")),
    _quads("out of order", lambda n: _quad(n) + _time(n ^ 3, graph=f"<urn:g:{n}>")),
    _quads("3 triples", lambda n: "".join(_quad(n, f'"{k}"') for k in range(3)) + _time(n)),
    _quads("time in the middle", lambda n: _around(n, 4)),
    _quads("100 triples", lambda n: _around(n, 100)),
    Spelling("nq", "ten times ahead", _ahead),
    Spelling("nq", "pieces", _pieces),
]


def _mixed(first: int) -> str:
    """All of them that need no options, in turn."""
    number = first // TEN
    return _UNMIXED[number % len(_UNMIXED)].write(first)


_UNMIXED = [one for one in NQUADS if not one.options and one.name not in ("integers", "decimals", "100 triples")]
NQUADS.append(Spelling("nq", "all of these mixed", _mixed))


def _record(n: int, triples: Any = None, **more: Any) -> str:
    triples = triples or f'<urn:c:{n % 50}> <urn:p:price> "{n % 977}.5"^^<{XSD}double> .\n'
    return json.dumps({"time": n, "triples": triples} | more, ensure_ascii=False) + "\n"


def _lines(name: str, line: Callable[[int], str], **options: Any) -> Spelling:
    return Spelling("jsonl", name, _each(line), options)


def _untimed(n: int, **more: Any) -> str:
    return json.dumps({"triples": f'<urn:c:{n % 50}> <urn:p:price> "{n % 977}.5" .'} | more) + "\n"


_SHORT = "<urn:c:{0}> <urn:p:price> {1} ."
MAPPING = {"subject": "<urn:c:{c}>", "predicate": "<urn:p:price>", "object": "{x}", "time": "{t}"}
TWO = {
    "time": "{t}",
    "triple": [
        {"subject": "<urn:c:{c}>", "predicate": "<urn:p:price>", "object": "{x}"},
        {"predicate": "<urn:p:size>", "object": "{n}"},
    ],
}
NESTED = MAPPING | {"subject": "<urn:c:{of.c}>"}


def _plain(n: int, **more: Any) -> str:
    return json.dumps({"t": n, "c": f"c{n % 50}", "x": n % 977 + 0.5, "n": n % 100} | more) + "\n"


JSON_LINES = [
    _lines("N-Triples", _record),
    _lines("a list", lambda n: _record(n, [f'<urn:c:{n % 50}> <urn:p:price> "{n % 977}.5"^^<{XSD}double>'])),
    _lines("two triples", lambda n: _record(n, f'<urn:c:{n % 50}> <urn:p:price> "{n}" .\n<urn:c> <urn:q> <urn:d> .')),
    _lines("short Turtle", lambda n: _record(n, _SHORT.format(n % 50, n % 977))),
    _lines("decimals", lambda n: _record(n, _SHORT.format(n % 50, f"{n % 977}.5"))),
    _lines("prefix", lambda n: _record(n, f":c{n % 50} :price {n % 977} .")),
    _lines("a, ; and ,", lambda n: _record(n, f":c{n % 50} a :Firm ; :price {n % 977}, {n % 50} .")),
    _lines("prefixed datatype", lambda n: _record(n, f':c{n % 50} :price "{n}"^^xsd:decimal .'), prefixes={"xsd": XSD}),
    _lines("language tags", lambda n: _record(n, f'<urn:c:{n % 50}> <urn:p:note> "{n}"@en .')),
    _lines("UTF-8", lambda n: _record(n, f'<urn:c:{n % 50}> <urn:p:note> "café {n}" .')),
    _lines("escapes", lambda n: _record(n, f'<urn:c:{n % 50}> <urn:p:note> "a \\"{n}\\"" .')),
    _lines("dateTimes", lambda n: _record(n, time=moment(n))),
    _lines("+00:00", lambda n: _record(n, time=moment(n)[:-1] + "+00:00")),
    _lines("decimal times", lambda n: _record(n, time=n + 0.25)),
    _lines("intervals", lambda n: _record(n, time=[n, n + 5])),
    _lines("intervals of dateTimes", lambda n: _record(n, time=[moment(n), moment(n + 5)])),
    _lines("start, end", lambda n: _untimed(n, start=n, end=n + 5)),
    _lines("graph", lambda n: _record(n, graph=f"urn:g:{n}")),
    _lines("stream", lambda n: _record(n, stream=f"urn:s:{n % 3}")),
    _lines("out of order", lambda n: _record(n ^ 3)),
    _lines("blank lines", lambda n: _record(n) + "\n"),
    _lines("CRLF", lambda n: _record(n)[:-1] + "\r\n"),
    _lines("mapping", _plain, mapping=MAPPING),
    _lines("mapping, two triples", _plain, mapping=TWO),
    _lines("mapping, a key inside", lambda n: _plain(n, of={"c": f"c{n % 50}"}), mapping=NESTED),
    _lines("mapping, null now and then", lambda n: _plain(n, **({} if n % 7 else {"x": None})), mapping=MAPPING),
    _lines("mapping, texts and numbers", lambda n: _plain(n, **({} if n % 2 else {"x": "none"})), mapping=MAPPING),
]


def _rows(name: str, line: Callable[[int], str], head: str = "t,c,x,n\n", **options: Any) -> Spelling:
    return Spelling("csv", name, _each(line), {"mapping": MAPPING} | options, head)


def _row(n: int, time: Any = None) -> str:
    return f"{n if time is None else time},c{n % 50},{n % 977}.5,{n % 100}\n"


def _american(n: int) -> str:
    year, month, day = moment(n)[:10].split("-")
    return _row(n, f"{int(month)}/{int(day)}/{year} {moment(n)[11:19]}.{n % 4 * 25:02}")


_CLF = "%d/%b/%Y:%H:%M:%S %z"
_TWELVE = "%a %B %d, %y %I:%M:%S %p"


def _formatted(form: str) -> Callable[[int], str]:
    return lambda n: _row(n, f'"{datetime.fromtimestamp(_BEGIN // 10**6 + n, UTC):{form}}"')


CSV = [
    _rows("one triple", _row),
    _rows("numbers that all differ", lambda n: f"{n},c{n % 50},{n}.25,{n % 100}\n"),
    _rows("texts that all differ", lambda n: f"{n},c{n % 50},reading {n},{n % 100}\n"),
    _rows("sparse quotes", lambda n: f'{n},c{n % 50},"a ""{n % 977}""",{n % 100}\n'),
    _rows("a bad row now and then", lambda n: _row(n) if n % 97 else f"{n},c{n % 50}\n", on_error="skip"),
    _rows("two triples", _row, mapping=TWO),
    _rows("dateTimes", lambda n: _row(n, moment(n))),
    _rows("+00:00", lambda n: _row(n, moment(n)[:-1] + "+00:00")),
    _rows("US dates, fractions", _american, mapping=MAPPING | {"time_format": "%m/%d/%Y %H:%M:%S.%f"}),
    _rows("time_format", lambda n: _row(n, moment(n)[:19]), mapping=MAPPING | {"time_format": "%Y-%m-%dT%H:%M:%S"}),
    _rows("names of months", _formatted(_CLF), mapping=MAPPING | {"time_format": _CLF}),
    _rows("names, AM and PM", _formatted(_TWELVE), mapping=MAPPING | {"time_format": _TWELVE}),
    _rows("days of the year", _formatted("%Y%j %T"), mapping=MAPPING | {"time_format": "%Y%j %H:%M:%S"}),
    _rows("intervals", lambda n: _row(n, f"{n}/{n + 5}")),
    _rows("start, end", lambda n: _row(n), mapping=MAPPING | {"time": ["{t}", "{t}"]}),
    _rows("quotes", lambda n: f'"{n}","c{n % 50}","{n % 977}.5","{n % 100}"\n'),
    _rows("line breaks in cells", lambda n: f'{n},"c\n{n % 50}",{n % 977}.5,{n % 100}\n'),
    _rows("CRLF", lambda n: _row(n)[:-1] + "\r\n"),
    _rows("tabs", lambda n: _row(n).replace(",", "\t"), "t\tc\tx\tn\n", mapping=MAPPING | {"delimiter": "\t"}),
    _rows("blank lines", lambda n: _row(n) + "\n"),
    _rows("UTF-8", lambda n: _row(n).replace(",c", ",é")),
    _rows("more cells", lambda n: _row(n)[:-1] + ",more\n" if n % 7 else _row(n)),
    _rows("empty cells", lambda n: _row(n) if n % 7 else f"{n},c{n % 50},,\n"),
    _rows("graph, stream", _row, mapping=MAPPING | {"graph": "<urn:g:{t}>", "stream": "<urn:s:{n}>"}),
    _rows("blank nodes", _row, mapping=MAPPING | {"subject": "_:{c}"}),
]
SPELLINGS = [*NQUADS, *JSON_LINES, *CSV]
