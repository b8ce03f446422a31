"""Small inputs, drawn from seeds, read in columns and in rows: what is seen of them must be the same.

``python -m tests.streams.columns.differential FIRST COUNT [FORMAT…]`` prints each difference with its seed, and for
each format the share of the events that came out of the code for columns: without that a fuzzer may miss it.
"""

from __future__ import annotations

import io
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from etalis_py.events import Event
from etalis_py.streams import Clock, StreamError, read_stream
from etalis_py.streams.columns import delimited, frames, json_lines, nquads
from etalis_py.streams.columns.flat_form import events_of
from etalis_py.streams.elements import in_lists

Input = tuple[Any, dict[str, Any]]
XSD = "http://www.w3.org/2001/XMLSchema#"
PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"

WORDS = ["acme", "b", "a b", "12", "1.50", "x/y", "ä", "urn:x:1", "http://ex.org/a b?c=ä#d"]
ODD_WORDS = [
    "", "", "", "", " ", "n/a", " n/a ", "NaN", "null", "01", "-.5", "+7", "1e5", "1E400", ".", "-", "7.", " 7", "7 ",
    "\u00a07", "\u0667",
    "12 000", "9" * 30, "a\tb", "\x0b", "\x1c1", "\x85", "\u2028", "\ufeff", "\ufeffacme", "a\ufeff", "\x7f", "\x00",
    "<>",
    "<urn:x>", "a>b", "%41", "100%", "{b}", "\\", "a\\b", "'", 'say "x"', "\U0001f600", "e\u0301", "true", "\u3000",
    "_:b",
]  # fmt: skip
NUMBERS = ["5", "6", "7", "12", "40"]
ODD_NUMBERS = [
    "-3", "+5", "05", "7.5", "7.0000001", "99999999999999", "9223372036854775807", "9" * 40, "1/4", "4/1", "1/PT2S",
    "", " ",
    " 5", "5 ", "\u00a05", "\u0665", "soon", "1e3", "0x5", "5_0", "2026-01-31", "\ufeff5", "5\x00", "P1D/9", "-0",
]  # fmt: skip
DATES = ["2026-01-31T10:00:00Z", "2026-01-31T10:00:01Z", "2026-01-31T10:00:00.5Z", "2026-02-01", "2026-01-31T10:00:00"]
ODD_DATES = [
    "2026-02-30", "2026-01-31T10:00:00+01:00", "2026-01-31T24:00:00Z", "2026-01-31T10:00:60Z", "0999-01-01",
    "12026-01-01",
    "-0001-01-01", "2026-01-31T10:00:00.1234567Z", "2026-01-31T10:00:00.1234560Z", "2026-1-31", "2026-01-31 10:00:00",
    "2026-01-31t10:00:00z", "2026-01-31T10:00Z", " 2026-01-31", "2026-01-31Z", "2026-01-31T10:00:00Z/PT5S", "5", "",
    "2026-01-31/2026-02-01", "20260131", "2026-01-31T10:00:00.Z", "2999-12-31T23:59:59.999999Z", "1000-01-01",
    "\ufeff2026-01-31",
    "2026-01-31T23:59:59Z\n", "\u0662026-01-31",
]  # fmt: skip
LOCALS = [
    "31.01.2026 10:00:00",
    "31.01.2026 10:00:01",
    "01.02.2026 00:00:00",
    "29.03.2026 02:30:00",
    "25.10.2026 02:30:00",
]
ODD_LOCALS = [
    "1.2.2026 1:2:3", "30.02.2026 10:00:00", "31.01.2040 10:00:00", "31.07.2040 10:00:00", "31.01.26 10:00:00", "",
    "31.01.2026  10:00:00", "31.01.2026\t10:00:00", "31.01.2026\u00a010:00:00", " 31.01.2026 10:00:00",
    "31.01.2026 24:00:00",
    "31.01.2026 10:00:60", "31.01.2026 10:00:61", "31.01.0999 10:00:00", "31.01.2026 10:00:00 x", "2026-01-31", "7",
    "\u0663\u0661.01.2026 10:00:00",
]  # fmt: skip


class Draws(random.Random):
    """Mostly what is usual: ``odd`` is the share of the rest."""

    odd = 0.0

    def one(self, usual: list[Any], odd: list[Any]) -> Any:
        return self.choice(odd if self.random() < self.odd else usual)


def _mapping(draws: Draws, time: str) -> dict[str, Any]:
    """A mapping over the columns a, b, t and u."""
    mapping: dict[str, Any] = draws.choice([
        {"subject": "<urn:{a}>", "predicate": "<urn:p>", "object": "{b}"},
        {"subject": ":{a}", "predicate": ":p{b}", "object": '"{b}"^^xsd:decimal', "graph": "<urn:g{a}>"},
        {"subject": ":x", "predicate": ":p", "object": '"{b}"@en', "stream": "<urn:s{a}>"},
        {"subject": ":{a}", "predicate": ":p", "object": "<{b}>"},
        {"subject": ":{a}/{b}", "predicate": ":p", "object": "x{a} {b}", "missing": ["n/a"]},
        {"triple": [
            {"subject": ":{a}", "predicate": ":p", "object": "{b}"},
            {"predicate": ":q", "object": "{a}"},
            {"predicate": ":p", "object": "{b}"},
        ]},
        {"subject": "_:{a}", "predicate": ":p", "object": "{b}"},
    ])  # fmt: skip
    mapping = dict(mapping)
    match time:
        case "local":
            mapping |= {"time": "{t}", "time_format": "%d.%m.%Y %H:%M:%S"}
            if draws.random() < 0.5:
                mapping["time_zone"] = draws.choice(["Europe/Berlin", "America/New_York", "UTC"])
        case "two":
            mapping["time"] = ["{t}", "{u}"]
        case "joined":
            mapping["time"] = "{t}{u}"
        case "arriving":
            pass
        case _:
            mapping["time"] = "{t}"
    if draws.random() < 0.15:
        mapping["retract"] = "{r}"
    if draws.random() < 0.1:
        mapping["time_unit"] = draws.choice(["ms", "us", "ns", "min"])
    return mapping


def _times(draws: Draws) -> tuple[str, list[str], list[str]]:
    kind = draws.choice(["number", "number", "date", "local", "two", "joined", "arriving"])
    lists = {"date": (DATES, ODD_DATES), "local": (LOCALS, ODD_LOCALS)}
    return kind, *lists.get(kind, (NUMBERS, ODD_NUMBERS))


def _options(draws: Draws) -> dict[str, Any]:
    options: dict[str, Any] = {"on_error": draws.choice(["stop", "skip"])}
    if draws.random() < 0.15:
        options["clock"] = draws.choice([Clock("integer"), Clock("datetime"), Clock("integer", "ms")])
    if draws.random() < 0.2:
        options["time_unit"] = draws.choice(["us", "ms", "ns", "h"])
    if draws.random() < 0.2:
        options["name"] = "urn:stream"
    return options


BLEMISHES = [b"\x00", b"\r", b"\n", b'"', b"\xef\xbb\xbf", b"\xff", b"\xc3", b",", b" ", b"\\", b""]


def _blemished(data: bytes, draws: Draws) -> bytes:
    """A few bytes changed, now and then; lines may not be UTF-8 afterwards."""
    if draws.random() > draws.odd:
        return data
    changed = bytearray(data)
    for _ in range(draws.randint(1, 2)):
        at = draws.randrange(len(changed) + 1)
        changed[at : at + draws.choice((0, 0, 1))] = draws.choice(BLEMISHES)
    return bytes(changed)


def csv_input(draws: Draws) -> Input:
    kind, times, odd_times = _times(draws)
    mapping = _mapping(draws, kind)
    header = draws.one(
        ["a,b,t,u,r,z"], ["a,b,t,u,z,r", '"a",b,t,u,r,z', "\ufeffa,b,t,u,r,z", " a,b ,t,u,r,z", "a,b,t,a,u,r"]
    )
    quoting = draws.choice([0.0, 0.0, 0.5, 1.0])

    def cell(text: str) -> str:
        wrong = '"' in text and draws.random() < draws.odd
        if wrong or not (draws.random() < quoting or any(c in text for c in ',"\n\r')):
            return text
        return '"' + text.replace('"', '""') + '"'

    lines = [header + "\n"]
    for _ in range(draws.randint(1, 14)):
        cells = [draws.one(WORDS, ODD_WORDS), draws.one(WORDS, ODD_WORDS), draws.one(times, odd_times)]
        cells += [draws.one(["9", "12"], odd_times), draws.one(["", "false"], ["true", "1", "maybe", " TRUE "])]
        cells += [draws.one(["z"], ODD_WORDS)]
        ending = draws.one(["\n"], ["\r\n", "\r", "\n\n", ",extra\n", '"\n', "\n \n", ""])
        lines.append(",".join(map(cell, cells)) + ending)
    data = _blemished("".join(lines).encode(), draws)
    return data, {"format": "csv", "mapping": mapping, **_options(draws)}


def json_input(draws: Draws) -> Input:
    """Objects for a mapping."""
    kind, times, odd_times = _times(draws)
    mapping = _mapping(draws, kind)
    numeric = draws.random() < 0.5
    lines = []
    odd_values = [*ODD_WORDS, None, True, False, 12, 1.5, 10**30, -0.0, [1], {"x": 1}, 2**63, -(2**63), 1e300]
    words: list[Any] = draws.choice([WORDS, [1, 2, 30], [1.5, 2.25], [True, False], [*WORDS, 1, None]])
    for _ in range(draws.randint(1, 14)):
        record: dict[str, Any] = {}
        for name in ("a", "b"):
            record[name] = draws.one(words, odd_values)
        for name in ("t", "u", "time"):
            text = draws.one(times, odd_times)
            number = numeric and text.lstrip("-").isdecimal() and text.isascii() and draws.random() > draws.odd
            record[name] = int(text) if number else draws.one([text], [None, True, 8.5, [1, 2], {}])
        if draws.random() < 0.5:
            record["r"] = draws.one(["", False, "false"], [True, "true", 1, 0, None, "maybe", 1.0])
        for name in ("punctuate", "retract", "retracted", "triples", "start", "end", "z", "stream", "graph"):
            if draws.random() < draws.odd / 4:
                record[name] = draws.choice([None, True, False, 0, 1, 3, "", "x", [1, 2], "<urn:a> <urn:p> <urn:b> ."])
        for name in list(record):
            if draws.random() < draws.odd / 4:
                del record[name]
        lines.append(_json_line(record, draws))
    return _joined(lines, draws), {"format": "jsonl", "mapping": mapping, **_options(draws)}


TRIPLES: list[Any] = [
    "<urn:a> <urn:p> <urn:b> .", '<urn:a> <urn:p> "1" .', '<urn:a> <urn:p> "1" .\n<urn:b> <urn:p> "2" .\n',
    f'<urn:a> <urn:p> "1"^^<{XSD}integer> .',
]  # fmt: skip
ODD_TRIPLES: list[Any] = [
    "", " ", "\n", "<urn:a> <urn:p> <urn:b>", ":a :p 1 .", "_:a <urn:p> _:b .", "nonsense",
    "<urn:a> <urn:p> <urn:b> <urn:g> .",
    "<urn:ä> <urn:p> 1 .", ["<urn:a> <urn:p> <urn:b>"], 7, None, {}, "# comment",
    '<urn:a> <urn:p> "1" .\r\n<urn:a> <urn:p> "2" .',
    '<urn:a> <urn:p> "\ufeff" .', "\ufeff<urn:a> <urn:p> <urn:b> .", '<urn:a> <urn:p> "1" . ',
    "<urn:a> <urn:p> <urn:b> .\n\n",
    '<urn:a> <urn:p> "\\u0041" .', '<urn:a> <urn:p> "\x00" .', '<urn:a> <urn:p> "x"@EN .',
    f'<urn:a> <urn:p> "x"^^<{XSD}string> .',
    '<urn:a> <urn:p> "1" .\n<urn:a> <urn:p> "1" .', "<urn:a> <urn:p> <urn:b> . <urn:a> <urn:p> <urn:c> .",
    "<a> <p> <b> .",
    '<urn:a> <urn:p> "\u2028" .', "<urn:a>\t<urn:p>\t<urn:b>\t.", "VERSION \"1.2\"",
    f'<urn:g> {PROV} "5"^^<{XSD}integer> .',
    "<urn:g> <urn:etalis:retracts> true .", '<urn:a> <urn:p> "a\\nb" .', "<urn:a> <urn:p> <urn:b> .\n# end", "MESSAGE",
    f'<urn:a> {PROV} "2026-01-31T10:00:00Z"^^<{XSD}dateTime> .', "<<( <urn:a> <urn:p> <urn:b> )>> <urn:p> <urn:c> .",
]  # fmt: skip


def triples_input(draws: Draws) -> Input:
    """JSON lines with triples."""
    times, odd_times = draws.choice([(NUMBERS, ODD_NUMBERS), (DATES, ODD_DATES)])
    numeric = draws.random() < 0.6 and times is NUMBERS
    lines = []
    for _ in range(draws.randint(1, 14)):
        text = draws.one(times, odd_times)
        number = numeric and text.lstrip("-").isdecimal() and text.isascii()
        record: dict[str, Any] = {
            "time": int(text) if number else draws.one([text], [None, True, 8.5, 8.0, [1, 2], ["1", "4"], {}, 10**30]),
            "triples": draws.one(TRIPLES, ODD_TRIPLES),
        }
        for name in ("punctuate", "retract", "retracted", "start", "end", "graph", "stream", "other", "tiem"):
            if draws.random() < draws.odd / 4:
                record[name] = draws.choice([None, True, False, 0, 1, 3, "", "urn:x", "_:b", [1, 2], "2026-01-31"])
        for name in list(record):
            if draws.random() < draws.odd / 8:
                del record[name]
        lines.append(_json_line(record, draws))
    return _joined(lines, draws), {"format": "jsonl", **_options(draws)}


def _json_line(record: dict[str, Any], draws: Draws) -> str:
    line = json.dumps(record, ensure_ascii=draws.random() < 0.5)
    return draws.one([line], [
        "", " ", "\t", "[1]", "{}", "null", "{", line[:-1], line + " ", " " + line, line + line, line.replace(":",
        " : "),
        line.replace("}", ',"time":7}'), line.replace("a", "\\u0061"), line.replace("5", "5.0"), line.replace("5",
        "5e0"),
        line + "\x0b", "\ufeff" + line, line + "\r", line.replace("5", "NaN"), line.replace("5", "05"), "\u00a0",
        "\x1c",
    ])  # fmt: skip


def _joined(lines: list[str], draws: Draws) -> bytes:
    end = draws.one(["\n"], ["\r\n", "\n\n", "\n \n"])
    text = end.join(lines) + draws.choice([end, "\n", ""])
    return _blemished(text.encode(), draws)


TERMS = [
    "<urn:a>",
    "<urn:b>",
    "<http://example.org/a?b=%20#c>",
    '"1"',
    f'"1"^^<{XSD}integer>',
    '"ä \\" \\\\"',
    '"x"@en',
]
ODD_TERMS = [
    "_:b1", "_:b.1", "<http://a:99999/>", '"x"@EN', f'"x"^^<{XSD}string>', '"\\u0061"', "<>", "12", '"\x7f"',
    "<urn:ä>", '"\ufeff"',
    '"\u2028"', '"\x00"', "<urn:a\u00a0b>", "<urn:a b>", '"a\\nb"', "<<( <urn:a> <urn:p> <urn:b> )>>", '"a',
    "<urn:%zz>",
    "<urn:\ufdd0>", "\ufeff<urn:a>", '"x"@en-GB', '"x"@en-gb', '"x"@en--ltr', f'"5"^^<{XSD}dateTime>',
]  # fmt: skip
ODD_LINES = [
    "", " ", "# a comment", "# @message", "MESSAGE", "nonsense", "<urn:a> <urn:p> .", '<urn:g1> <urn:note> "about" .',
    "<urn:x> <urn:p> <urn:y> .", f'<urn:g2> {PROV} "2026-01-01T00:00:00Z"^^<{XSD}dateTime> .',
    "_:g <urn:p> <urn:o> _:g .",
    "<urn:g1> <http://www.w3.org/ns/rsp#punctuate> <http://www.w3.org/ns/rsp#now> .", 'VERSION "1.2"', "\ufeff",
    "<urn:g1> <urn:etalis:retracts> true .", f'<urn:g1> <urn:etalis:retracts> "true"^^<{XSD}boolean> .', "\x0b",
    "\u00a0",
]  # fmt: skip


def quads_input(draws: Draws) -> Input:
    dates = draws.random() < 0.7
    lines, number = [], 0
    for _ in range(draws.randint(1, 12)):
        number += draws.one([1], [0, 1, -1])
        graph = f"<urn:g{number}>"
        quads = [
            f"<urn:{draws.choice('ab')}> <urn:p> {draws.one(TERMS, ODD_TERMS)} {graph} ."
            for _ in range(draws.choice([1, 1, 1, 2, 3]))
        ]
        if dates:
            literal = f'"{draws.one(DATES[:3], DATES + ODD_DATES)}"^^<{XSD}dateTime>'
        else:
            literal = f'"{draws.one(NUMBERS, ODD_NUMBERS)}"^^<{XSD}integer>'
        literal = draws.one(
            [literal], ['"5"', "<urn:x>", '"2026-01-31T10:00:00Z"', f'"5"^^<{XSD}long>', f'"5.5"^^<{XSD}decimal>']
        )
        time = f"{draws.one([graph], ['_:g', '<urn:g1>', '<urn:other>'])} {PROV} {literal} ."
        element = draws.one([[*quads, time]], [[time, *quads], quads, [*quads, time, *quads], [*quads, time, time]])
        lines += element
        if draws.random() < draws.odd:
            lines.append(draws.choice(ODD_LINES))
    gap = draws.one([" "], ["\t", "  "])
    text = draws.one(["\n"], ["\r\n", "\r", "\n\n"]).join(lines).replace("> <", f">{gap}<") + draws.choice(["\n", ""])
    return _blemished(text.encode(), draws), {"format": "nq", **_options(draws)}


VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [1, 2, -7, 2**53 + 1]),
    (pa.uint64(), [1, 2**64 - 1]),
    (pa.float64(), [1.5, 7.0, -0.0, 1e300, 1e-7, float("nan"), float("inf")]),
    (pa.float32(), [1.5, 0.1]),
    (pa.bool_(), [True, False]),
    (pa.decimal128(9, 2), [1, 2, -3]),
    (pa.timestamp("us", "UTC"), [0, 1_500_000, -1]),
    (pa.timestamp("ns"), [0, 1_500_000_001]),
    (pa.date32(), [0, 20_000]),
    (pa.time64("us"), [0, 86_399_999_999]),
    (pa.duration("ms"), [0, 1500, -1]),
    (pa.large_string(), [*WORDS, "", " "]),
    (pa.binary(), [b"a", b"\xff"]),
    (pa.null(), [None]),
]


def frame_input(draws: Draws) -> Input:
    """A frame for a mapping."""
    kind, times, odd_times = _times(draws)
    mapping = _mapping(draws, kind)
    size = draws.randint(1, 14)
    columns: dict[str, pa.Array] = {}
    for name in "ab":
        if draws.random() < 0.5:
            columns[name] = pa.array([draws.one(WORDS, [*ODD_WORDS, None]) for _ in range(size)], pa.string())
        else:
            form, values = draws.choice(VALUES)
            columns[name] = pa.array([draws.one(values, [None]) for _ in range(size)], form)
        if draws.random() < 0.3:
            columns[name] = columns[name].dictionary_encode()
    for name in "tu":
        column = pa.array([draws.one(times, [*odd_times, None]) for _ in range(size)], pa.string())
        if times is NUMBERS and draws.random() < 0.5:
            columns[name] = pa.array([draws.one([1, 2, 30], [-5, None, 2**62]) for _ in range(size)], pa.int64())
        elif times is DATES and draws.random() < 0.5:
            unit = draws.choice([pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.date32()])
            numbers = [draws.one([1, 20_000, 30_001], [-5, None, 2**30]) for _ in range(size)]
            columns[name] = pa.array(numbers, pa.int32() if unit == pa.date32() else pa.int64()).cast(unit)
        else:
            columns[name] = column
    columns["r"] = pa.array([draws.one([False], [True, None]) for _ in range(size)])
    return pa.table(columns), {"mapping": mapping, **_options(draws)}


FORMATS: dict[str, Callable[[Draws], Input]] = {
    "csv": csv_input,
    "json": json_input,
    "triples": triples_input,
    "quads": quads_input,
    "frame": frame_input,
}


class _Letters:
    """Keeps what is refused, as a file of dead letters does."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, str, str, str]] = []

    def refused(self, error: StreamError) -> None:
        self.entries.append((error.line, error.reason, error.text, error.hint))


def seen(data: Any, options: dict[str, Any], *, bulk: bool) -> tuple[list[Any], int, int]:
    """All that can be seen of an input, and how many of how many events came in columns."""
    letters = _Letters()
    items: list[Any] = []
    error, stream, columnar = "", None, 0
    try:
        source = io.BytesIO(data) if isinstance(data, bytes) else data
        stream = read_stream(source, now=lambda: 1000, dead_letters=letters, **options)  # type: ignore[arg-type]
        for chunk in stream.chunks(large=bulk):
            if isinstance(chunk, pa.RecordBatch):
                events = list(events_of(chunk))
                columnar += len(events)
                items += events
            else:
                items += chunk
    except StreamError as failure:
        error = str(failure)
    except Exception as failure:  # of no kind that a user should see
        error = f"raw {type(failure).__name__}: {failure}"
    state = [] if stream is None else [stream.counters, stream.clock, stream.warnings]
    typed = [(type(item).__name__, repr(item)) for item in items]
    return [typed, error, letters.entries, *state], columnar, sum(isinstance(item, Event) for item in items)


def _parts(columns: list[Any], rows: list[Any]) -> Iterator[str]:
    """What differs, columns first; of items only the first ones that differ."""
    for a, b in zip(columns, rows, strict=False):
        if isinstance(a, list) and isinstance(b, list):
            a, b = next(((x, y) for x, y in zip_longest(a, b) if x != y), ("", ""))
        if a != b or str(a).startswith("raw "):
            yield f"\n  {a}\n  {b}"


def differ(form: str, seed: int) -> tuple[str, int, int]:
    """What differs between columns and rows, if anything; and how many of how many events came in columns."""
    draws = Draws(f"{form} {seed}")
    draws.odd = draws.choice([0.0, 0.02, 0.05, 0.2])
    data, options = FORMATS[form](draws)
    block, few = draws.choice([40, 200, 1 << 20]), draws.choice([1, 2, 64])
    with (
        patch.object(delimited, "BLOCK", block),
        patch.object(json_lines, "BLOCK", block),
        patch.object(nquads, "BLOCK", block),
        patch.object(nquads, "_FEW", few),
    ):
        columns, columnar, events = seen(data, options, bulk=True)
        if form == "frame":
            with patch.object(
                frames, "mapped", lambda table, mapping, context: in_lists(table.by_rows(range(table.size)))
            ):
                rows, _, _ = seen(data, options, bulk=True)
        else:
            rows, _, _ = seen(data, options, bulk=False)
    difference = ""
    if columns != rows or columns[1].startswith("raw "):
        shown = data if isinstance(data, bytes) else data.to_pydict()
        difference = f"{form} {seed}: {shown!r}\n {options}{''.join(_parts(columns, rows))}"
    return difference, columnar, events


def main(first: int, count: int, forms: list[str]) -> int:
    differences = 0
    for form in forms:
        totals: Counter[str] = Counter()
        for seed in range(first, first + count):
            difference, columnar, events = differ(form, seed)
            totals += Counter(columns=columnar, events=events)
            if difference:
                differences += 1
                print(difference, flush=True)
        share = totals["columns"] / max(1, totals["events"])
        print(f"= {form}: {count} inputs, {totals['events']} events, {share:.0%} of them in columns", flush=True)
    return differences


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(FORMATS)) else 0)
