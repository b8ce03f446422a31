"""The operators of the language as an editor explains them: how each is written, and what it means."""

from __future__ import annotations

from typing import NamedTuple

from etalis_rules.relations import Op, formula, words


class OperatorHelp(NamedTuple):
    """How it is written, and what it means; [a, a′] is the interval of the left side, [b, b′] that of the right."""

    form: str
    meaning: str


def _relation(op: Op) -> OperatorHelp:
    """A temporal relation between the intervals [a, a′] of A and [b, b′] of B."""
    meaning = words(op).replace("left", "A").replace("right", "B")
    return OperatorHelp(f"{{A}} {op.name} {{B}}", f"{meaning[0].upper()}{meaning[1:]}: {formula(op)}.")


OPERATORS: dict[str, OperatorHelp] = {
    "NEXT": OperatorHelp(
        "{A} NEXT {B}", "A SEQ B, where B is the first that follows for the same key. Filters in B may read A."
    ),
    **{op.name: _relation(op) for op in Op if op not in (Op.AND, Op.NEXT)},
    "OPTIONALSEQ": OperatorHelp("{A} OPTIONALSEQ {B}", "B, and with it an earlier A, where there was one."),
    "EQUALSOPTIONAL": OperatorHelp(
        "{A} EQUALSOPTIONAL {B}", "A, and with it a B of the same interval, if there is one."
    ),
    "AND": OperatorHelp("{A} AND {B}", "Both, in any order. The interval is the hull."),
    "UNION": OperatorHelp("{A} UNION {B}", "Either."),
    "OPTIONAL": OperatorHelp(
        "{A} OPTIONAL {B}  or  {A} SEQ OPTIONAL {B} SEQ {C}  or  {A} SEQ OPTIONAL {B} WITHIN d",
        "A, and with it a B that ends by then, where there was one. After SEQ: A SEQ B SEQ C, or A SEQ C where no B"
        " lies between them; A with each B that ends within d after A, or A alone when the time is over.",
    ),
    "MINUS": OperatorHelp("{A} MINUS {B}", "A, unless a compatible B ended by the end of the group."),
    "NOT": OperatorHelp(
        "{A} SEQ NOT {N} SEQ {C}  or  {P} NOT {N}  or  {A} SEQ NOT {N} WITHIN d",
        "No N between A and C; no N during P; or no N for d after A. Filters in N may read the left side.",
    ),
    "REPEAT": OperatorHelp(
        "{A} REPEAT m [TO n | OR MORE] [BY ?k …] [WHERE (F)] [NOT {N}] [GAP 30 min] [LONGEST | MAXIMAL | UNTIL {B}]"
        " [AS (agg AS ?v, …)]",
        "A run of A, each the next of the one before. F holds at every step, with PREVIOUS(?x), PREVIOUS(?x, 2),"
        " FIRST(?x) and aggregates over the run so far. MAXIMAL reports a run once, when it is over;"
        " UNTIL when a B comes.",
    ),
    "GAP": OperatorHelp("{A} REPEAT … GAP 30 min", "A longer silence between two elements begins a new run."),
    "LONGEST": OperatorHelp("{A} REPEAT … LONGEST", "Of the runs with the same last element, the longest."),
    "MAXIMAL": OperatorHelp(
        "{A} REPEAT … [GAP 30 min] MAXIMAL",
        "Each run once, when it is over: it cannot grow at either end. With GAP a session, which the clock ends.",
    ),
    "UNTIL": OperatorHelp(
        "{A} REPEAT … UNTIL {B}", "The run that is open when a B comes, reported at B, whose variables are visible."
    ),
    "SKIP": OperatorHelp(
        "{P} SKIP PAST (e) [BY ?k …]  or  {P} SKIP TO (e) [BY ?k …]",
        "Of the matches of P those that start after (TO: at or after) the value of e in the last one kept.",
    ),
    "DISJOINT": OperatorHelp("{P} DISJOINT [BY ?k …]", "Matches that do not overlap: SKIP PAST (getENDTIME())."),
    "THROTTLE": OperatorHelp("{P} THROTTLE 1 h [BY ?k …]", "At most one match in that time."),
    "WITHIN": OperatorHelp(
        "{A} WITHIN 10 s  or  WHERE {…} WITHIN 10 s",
        "The match takes at most that long. After the WHERE clause of a grouped query: a sliding window.",
    ),
    "STREAM": OperatorHelp("STREAM <s> {A}", "Only events of that stream."),
    "EVENT": OperatorHelp(
        "EVENT {P}  or  EVENT ?g {P}  or  EVENT <g> {P}",
        "What one event says: P over the triples of a single event and the background.",
    ),
    "START": OperatorHelp(
        "{ START } SEQ NOT {A} WITHIN d",
        "The start of the stream, before every event: at the left of SEQ, NEXT, SEQ NOT; by itself its time.",
    ),
    "WINDOW": OperatorHelp("WINDOW :w {A}", "What the window holds."),
    "POLICY": OperatorHelp("USING POLICY recent", "Events are used up: by the latest partner, or the earliest."),
    "GETSTARTTIME": OperatorHelp("getSTARTTIME()", "When the solution of the group starts."),
    "GETENDTIME": OperatorHelp("getENDTIME()", "When the solution of the group ends."),
    "GETDURATION": OperatorHelp("getDURATION()", "How long the solution of the group takes."),
    "PREVIOUS": OperatorHelp(
        "PREVIOUS(?x)  or  PREVIOUS(?x, 2)",
        "In the condition of a REPEAT: the value in the element before, or two back (unbound where there is none).",
    ),
    **dict.fromkeys(
        ("FIRST", "LAST"),
        OperatorHelp(
            "REPEAT … AS (FIRST(?x) AS ?from, LAST(?x) AS ?to)",
            "The value in the first or last element of a run; FIRST(?x) also in the condition of a REPEAT.",
        ),
    ),
    "CONSTRUCT": OperatorHelp(
        "CONSTRUCT {…} [AT END] WHERE {…}",
        "A rule: each solution is an event again, for all queries. AT END: a point, the end of the solution.",
    ),
    "REGISTER": OperatorHelp(
        "REGISTER QUERY name AS …", "Gives the query a name; REGISTER STREAM names what it makes."
    ),
}
WORDS = (
    *("SELECT", "CONSTRUCT", "ASK", "DESCRIBE", "WHERE", "FILTER", "BIND", "VALUES", "GROUP", "BY", "HAVING"),
    *("ORDER", "LIMIT", "OFFSET", "DISTINCT", "PREFIX", "BASE", "FROM", "NAMED", "GRAPH", "EXISTS", "USING", "QUERY"),
    *("AS", "ON", "RANGE", "STEP", "RSTREAM", "ISTREAM", "DSTREAM"),
    *("AT", "END", "MORE", "OR", "PAST", "TO"),
)
