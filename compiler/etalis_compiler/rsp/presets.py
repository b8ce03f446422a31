"""The behaviour of the systems that RSP-QL and RSEP-QL cover.

[RSPQL] Table 2:

| preset       | dataset          | evaluation times                   | streaming operator        |
|--------------|------------------|------------------------------------|---------------------------|
| c-sparql     | default graph    | window close and non-empty content | RSTREAM                   |
| cqels        | named windows    | content change                     | ISTREAM                   |
| sparqlstream | default graph    | window close and non-empty content | RSTREAM, ISTREAM, DSTREAM |

[RSEP] Table 1: a landmark window with SEQ is EP-SPARQL (unrestricted; with SEQ^c and P^c chronological; with SEQ^r and
P^r recent), a time window with SEQ^n is C-SPARQL's ``timestamp``, a time window alone is C-SPARQL.

A preset changes how a query is evaluated, not its content: the windows and the shape of the dataset are those of the
text (the dialects have their own syntax for them).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .plan import EventExpr, First, Landmark, Last, MatchPlan, Sequence, Strategy, WindowPlan

CLOSE = (Strategy("WC"), Strategy("NC"))
CHANGE = (Strategy("CC"),)


@dataclass(frozen=True, slots=True)
class Preset:
    """``operators``: those the system offers, the first being its own; ``sequence``: how its SEQ selects.

    ``landmark``: it only has landmark windows.
    """

    report: tuple[Strategy, ...]
    operators: tuple[str, ...]
    sequence: str = ""
    consumption: str = "unrestricted"
    landmark: bool = False


PRESETS = {
    "c-sparql": Preset(CLOSE, ("RSTREAM",), "naive"),
    "cqels": Preset(CHANGE, ("ISTREAM",)),
    "sparqlstream": Preset(CLOSE, ("RSTREAM", "ISTREAM", "DSTREAM")),
    "rsp-ql": Preset(CLOSE, ("RSTREAM", "ISTREAM", "DSTREAM")),
    "ep-sparql-unrestricted": Preset(CHANGE, ("ISTREAM", "RSTREAM"), "unrestricted", landmark=True),
    "ep-sparql-chronological": Preset(CHANGE, ("RSTREAM", "ISTREAM"), "chronological", "chronological", True),
    "ep-sparql-recent": Preset(CHANGE, ("RSTREAM", "ISTREAM"), "recent", "recent", True),
}


def with_preset(plan: WindowPlan, name: str) -> WindowPlan:
    """The plan as the named system would run it.  Raises ``ValueError`` if the system could not."""
    preset = PRESETS.get(name)
    if preset is None:
        raise ValueError(f"unknown preset {name!r}: use one of {', '.join(PRESETS)}")
    for window in plan.windows:
        if preset.landmark and not isinstance(window.shape, Landmark):
            raise ValueError(f"the preset {name} stands for landmark windows: write {window.name} … [LANDMARK 0]")
    return replace(
        plan,
        report=preset.report,
        r2s=plan.asked if plan.asked in preset.operators else preset.operators[0],
        consumption=preset.consumption,
        matches=tuple(_select(m, preset.sequence) for m in plan.matches) if preset.sequence else plan.matches,
    )


def _select(match: MatchPlan, policy: str) -> MatchPlan:
    return match if match.events is None else MatchPlan(match.name, _sequences(match.events, policy))


def _sequences(event: EventExpr, policy: str) -> EventExpr:
    match event:
        case Sequence(left, right, _):
            return Sequence(_sequences(left, policy), _sequences(right, policy), policy)
        case First(inner):
            return First(_sequences(inner, policy))
        case Last(inner):
            return Last(_sequences(inner, policy))
    return event
