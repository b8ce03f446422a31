"""What the tsunami replay reads from its matches: for its table and its picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from etalis_rules.terms import iri_value, parts

from etalis_py.events.clock import render_datetime
from etalis_py.replays.dart_files import StationRecord
from etalis_py.replays.gazetteer import STATION, TSUNAMI
from etalis_py.replays.replay import ReplayMatch, Row

THRESHOLD_M = 0.030

_PREDICTION, _DIFFERENCE = f"<{TSUNAMI}prediction>", f"<{TSUNAMI}difference>"


@dataclass(frozen=True, slots=True)
class Predicted:
    """A reading that was predicted: when, and the prediction and the difference in metres."""

    time: int
    prediction: float
    difference: float


@dataclass(slots=True)
class StationResult:
    """What the rules found at one station; ``places`` are (kilometres, name), ``broken`` counts impossible levels."""

    predicted: list[Predicted] = field(default_factory=list)
    alarms: list[Predicted] = field(default_factory=list)
    tsunamis: list[int] = field(default_factory=list)
    places: set[tuple[int, str]] = field(default_factory=set)
    broken: int = 0

    @property
    def largest(self) -> Predicted | None:
        return max(self.predicted, key=lambda p: abs(p.difference), default=None)


def _number(term: str) -> float:
    return float(parts(term)[0])


def _station(term: str) -> str:
    return iri_value(term).removeprefix(STATION).split("/")[0]


def collect(matches: Iterable[ReplayMatch]) -> dict[str, StationResult]:
    """The matches by station."""
    results: dict[str, StationResult] = {}
    for match in matches:
        if match.end_us is None:
            continue
        match match.query:
            case "predictions":
                properties = {predicate: (subject, value) for subject, predicate, value in match.triples or ()}
                reading, prediction = properties[_PREDICTION]
                result = results.setdefault(_station(reading), StationResult())
                difference = _number(properties[_DIFFERENCE][1])
                result.predicted.append(Predicted(match.end_us, _number(prediction), difference))
            case "alarms":
                b = match.bindings
                result = results.setdefault(_station(b["station"]), StationResult())
                alarm = Predicted(match.end_us, _number(b["prediction"]), _number(b["difference"]))
                result.alarms.append(alarm)
                result.broken += parts(b["broken"])[0] == "true"
            case "tsunamis":
                for subject, _, _ in match.triples or ():
                    results.setdefault(_station(subject), StationResult()).tsunamis.append(match.end_us)
            case "warnings":
                b = match.bindings
                result = results.setdefault(_station(b["station"]), StationResult())
                result.places.add((int(parts(b["km"])[0]), parts(b["name"])[0]))
    return results


def summary(records: Iterable[StationRecord], results: dict[str, StationResult]) -> list[Row]:
    return [_row(record, results.get(record.station, StationResult())) for record in records]


def _row(record: StationRecord, result: StationResult) -> Row:
    largest = result.largest
    names = [name for _, name in sorted(result.places)]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    odd = []
    if result.broken:
        odd.append(f"broken gauge: {result.broken} differences above 5 m")
    if record.report.missing:
        odd.append(f"{record.report.missing} readings missing")
    if record.report.bad:
        odd.append(f"{record.report.bad} bad rows")
    return {
        "station": record.station,
        "readings": str(len(record.readings)),
        "predicted": str(len(result.predicted)),
        "alarms": str(len(result.alarms)),
        "tsunami detected": ", ".join(map(_short, result.tsunamis)) or "no",
        "largest difference": f"{largest.difference:+.3f} m at {_short(largest.time)}" if largest else "none",
        "places warned": shown or "none",
        "remarks": "; ".join(odd),
    }


def _short(time: int) -> str:
    """``03-11 05:49:00``: month, day and time of day."""
    text = render_datetime(time)
    return f"{text[5:10]} {text[11:19]}"
