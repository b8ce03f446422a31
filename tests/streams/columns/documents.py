"""N-Quads documents drawn over all orders of lines, shapes of elements and spellings of times, some with faults."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from etalis_py.streams import render_datetime

XSD = "http://www.w3.org/2001/XMLSchema#"
PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
RESULT, FROM, TO = "<http://www.w3.org/ns/sosa/resultTime>", "<urn:from>", "<urn:to>"
NOW = "<http://www.w3.org/ns/rsp#now>"
PUNCTUATE = "<http://www.w3.org/ns/rsp#punctuate>"
TIMINGS: list[tuple[list[str], dict[str, Any]]] = [
    ([PROV], {}),
    ([PROV], {}),
    ([RESULT], {"time_predicate": RESULT}),
    ([RESULT, PROV], {"time_predicate": [RESULT, PROV]}),
    ([PROV, FROM, TO], {"start_predicate": FROM, "end_predicate": TO}),
    (
        [RESULT, PROV, FROM, TO],
        {"start_predicate": FROM, "end_predicate": TO, "time_predicate": [RESULT, PROV]},
    ),
]
OBJECTS = [
    '"1"', f'"1"^^<{XSD}integer>', '"x"@en', '"x"@en-GB', '"x"@EN', r'"\u0061"', '"a"', r'"ä \" \n"', "<urn:a>",
    "<urn:ä>", "_:b", "_:b.1", f'"1"^^<{XSD}string>', '"t\'"', r'"t\'"', r'"\U0001F600"', '"\U0001f600"',
    '<<( _:b <urn:p> "x" )>>',
]  # fmt: skip
NO_TIMES = [
    "soon", "17", "2026-02-30T00:00:00Z", " 2026-01-01T00:00:00Z ", "2026-01-01T00:00:01Z/2026-01-01T00:00:00Z", "",
    "2026-01-01T00:00:00+15:00", "1e3", "/", "99999999999999999999", "9223372036854", "-", "+", "5.", "PT", "1/2/3",
    "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Z/PT", "2026-01-01T00:00:00Z/P1M",
]  # fmt: skip
ODD = [
    "nonsense", "# @message", "MESSAGE", "<urn:a> <urn:p> .", r'<urn:a> <urn:p> "\uD800" <urn:g1> .', "\udcff",
    '<urn:a> <urn:p> "a"@x <urn:g1> .', '<urn:a> <urn:p> "x\udcff" <urn:g1> .', '<urn:x> <urn:q> "1" .',
    '<urn:y> <urn:q> "1" .', f"<urn:g2> {PUNCTUATE} {NOW} .", "<urn:g2> <urn:etalis:retracts> <urn:g1> .",
    f'<urn:g1> <urn:etalis:retracts> "true"^^<{XSD}boolean> .',
]  # fmt: skip


@dataclass(slots=True)
class Document:
    """A document as it grows; ``odd`` is the share of faults."""

    random: Random
    predicates: list[str]
    numbers: bool
    odd: float
    moment: int = 0

    def text(self) -> str:
        random, lines = self.random, list[str]()
        graphs = [*(f"<urn:g{i}>" for i in range(6)), "_:g1", "<urn:gä>", "_:g.2"]
        graphs = graphs if random.random() < 0.5 else graphs[: random.randint(2, 6)]
        for _ in range(random.randint(1, 14)):
            self.moment += random.randint(0, 2)
            part = self.element(random.choice(graphs), graphs)
            if lines and random.random() < 0.15:
                lines.insert(random.randint(0, len(lines)), part.pop())
            lines += part
            if random.random() < 0.3:
                lines.append(random.choice(["", "# c", "  ", "\t# c"]))
            if random.random() < self.odd:
                graph = random.choice(graphs)
                lines.append(random.choice([*ODD, *self.times(graph), self.line(graph, PUNCTUATE, self.time())]))
        end = random.choice(["\n", "\n", "\n", "\r\n"])
        return end.join(lines) + random.choice(["", end])

    def element(self, graph: str, graphs: list[str]) -> list[str]:
        """A graph of 1 to 100 triples with its time: before, after, between, inside, missing, with others between."""
        random = self.random
        size = random.choice([1, 2, 3, 10, random.randint(1, 100)]) if random.random() < 0.3 else random.randint(1, 3)
        quads = [self.quad(graph) for _ in range(size)]
        times, place = self.times(graph), random.randint(0, size)
        match random.randint(0, 9):
            case 0:
                return quads + times
            case 1:
                return times + quads
            case 2:
                return [*quads[:place], *times, *quads[place:]]
            case 3:
                other = random.choice(graphs)
                return [*times, *self.times(other), *quads, self.quad(other)]
            case 4:
                again = self.times(graph) if random.random() < 0.3 else []
                return [*times, *quads, self.quad(random.choice(graphs)), self.quad(graph), *again]
            case 5:
                return quads if random.random() < 0.3 else quads + times
            case 6:
                return [*quads[:place], self.line(graph, "<urn:note>", random.choice(OBJECTS)), *quads[place:], *times]
            case 7:
                return quads + times + self.times(graph)
            case 8:
                return [*quads, self.line("<urn:o>", random.choice(self.predicates), f"{self.time()} {graph}")]
        lines = quads + times
        random.shuffle(lines)
        return lines

    def quad(self, graph: str) -> str:
        random = self.random
        predicate = random.choice(self.predicates) if random.random() < 0.03 else random.choice(["<urn:p>", "<urn:q>"])
        term = random.choice(OBJECTS) if random.random() < 0.9 else self.time()
        return self.line(random.choice(["<urn:s>", "_:s", "<urn:t>"]), predicate, f"{term} {graph}")

    def line(self, subject: str, predicate: str, rest: str) -> str:
        gap = self.random.choice([" "] * 6 + ["\t", ""])
        end = self.random.choice([" ."] * 6 + [".", " . ", " . # c", "\t."])
        return f"{subject}{gap or ' '}{predicate}{gap}{rest}{end}"

    def times(self, graph: str) -> list[str]:
        if FROM in self.predicates and self.random.random() < 0.7:
            return [self.line(graph, FROM, self.time()), self.line(graph, TO, self.time(self.random.randint(0, 3)))]
        return [self.line(graph, self.random.choice(self.predicates), self.time())]

    def time(self, after: int = 0) -> str:
        random, n = self.random, self.moment + after
        text, later = (render_datetime(1_767_225_600_000_000 + 250_000 * k) for k in (n, n + 2))
        bare = text[:-1]
        spelled = [
            text, text, text, bare, f"{bare}+00:00", f"{bare}-05:30", f"{text}/PT1M2.5S", f"{text}/{later}",
            f"PT5S/{text}", "2026-01-01", "2026-01-01+02:00", "2026-01-01T24:00:00Z", "2026-01-01T10:00:60Z",
            "12026-01-01T00:00:00Z", f"{text[:19]}.1234567Z", f"{text[:19]}.1234560Z",
        ]  # fmt: skip
        if self.numbers:
            spelled = [f"{n}", f"{n}", f"{n}.5", f"+{n}", f"-{n}", f"{n}/{n + 2}", f"{n}/PT{n}S"]
        chosen = random.choice(NO_TIMES) if random.random() < self.odd / 2 else random.choice(spelled)
        if random.random() < self.odd / 5:
            return random.choice(["<urn:x>", "_:t"])
        types = ["dateTime", "dateTimeStamp", "string", "integer", ""]
        name = random.choice(types)
        return f'"{chosen}"' + (f"^^<{XSD}{name}>" if name else "")


def drawn(seed: int) -> tuple[str, dict[str, Any]]:
    """A document, and the options to read it with."""
    random = Random(seed)
    predicates, options = random.choice(TIMINGS)
    document = Document(random, predicates, random.random() < 0.3, random.choice([0, 0, 0.05, 0.3]))
    options = options | {"on_error": random.choice(["stop", "skip"])}
    if random.random() < 0.1:
        options["max_pending"] = random.randint(1, 3)
    if random.random() < 0.3:
        options["messages"] = False
    if random.random() < 0.2:
        options["name"] = "urn:stream"
    return document.text(), options
