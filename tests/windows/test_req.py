"""[REQ]: every query that it prints, on its running example, with answers worked out by hand.

People are seen in rooms.  The items of the stream are those of [REQ], at 20, 70 and 130 seconds:

    :g1 {:axel :isIn :RedRoom. :darko :isIn :RedRoom}   :g2 {:axel :isIn :BlueRoom}   :g3 {:minh :isIn :RedRoom}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from etalis_compiler.diagnostics import QueryError

from etalis_py import Engine, compile
from etalis_py.events import Event
from etalis_py.knowledge import load
from tests.compiler.test_parser_papers import PREFIXES
from tests.windows.small import EX, SECOND, item, run, show

REQ = Path(__file__).parents[1] / "compiler" / "papers" / "req"
SOCIAL = "streams/social"


def text(name: str) -> str:
    return (REQ / f"{name}.rq").read_text(encoding="utf-8")


def ask(name: str, events: list[Event], **options: Any) -> list[str]:
    return run(text(name), events, prefixes=PREFIXES, **options)


def rooms(stream: str, *seen: str) -> list[Event]:
    """``20 axel RedRoom darko RedRoom``: a time and who is where."""
    items = []
    for line in seen:
        time, *words = line.split()
        triples = " . ".join(f":{who} :isIn :{room}" for who, room in zip(words[::2], words[1::2], strict=True))
        items.append(item(int(time), triples, stream, f"g{time}"))
    return items


EXAMPLE = ("20 axel RedRoom darko RedRoom", "70 axel BlueRoom", "130 minh RedRoom")
PEOPLE = rooms(SOCIAL, *EXAMPLE)


def graph(iri: str, *triples: str) -> Any:
    from etalis_py.events import event

    return load([], named={iri: list(event(" . ".join(triples), 0).triples)}, entailment="rdf", cache=False)


# --- S2S: streams without windows ---


def test_who_is_where_rsp_ql() -> None:
    assert ask("who-is-where.rsp-ql", PEOPLE) == [
        "person=axel room=RedRoom @[20, 20]",
        "person=darko room=RedRoom @[20, 20]",
        "person=axel room=BlueRoom @[70, 70]",
        "person=minh room=RedRoom @[130, 130]",
    ]


def test_who_is_where_cqels() -> None:
    """The size of the window has no effect on what CQELS reports: only what is new comes out."""
    assert ask("who-is-where.cqels", PEOPLE) == [
        "person=axel room=RedRoom @[0, 20]",
        "person=darko room=RedRoom @[0, 20]",
        "person=axel room=BlueRoom @[10, 70]",
        "person=minh room=RedRoom @[70, 130]",
    ]


def test_where_is_axel_by_filter_and_by_pattern() -> None:
    one = ["room=RedRoom @[20, 20]", "room=BlueRoom @[70, 70]"]
    assert ask("where-is-axel.rsp-ql.repaired", PEOPLE) == [one[0], one[0], one[1], one[1]]


def test_aggregates_directly_on_a_stream() -> None:
    """[REQ] S2S, Aggregations: all that has come so far."""
    query = "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s { WINDOW :w { ?p :isIn ?r } }"
    assert run(query, rooms("s", *EXAMPLE)) == ["n=2 @[20, 20]", "n=3 @[70, 70]", "n=4 @[130, 130]"]


# --- S2R: windows ---

TRACKED = ["room=BlueRoom @[0, 600]", "room=RedRoom @[0, 600]", "room=BlueRoom @[60, 660]"]


def test_track_axel_sliding_c_sparql() -> None:
    """Axel was seen at 20 and 70: the windows (0, 600] and (60, 660] hold him."""
    assert ask("track-axel-sliding.c-sparql", PEOPLE) == TRACKED


def test_track_axel_sliding_rsp_ql() -> None:
    assert ask("track-axel-sliding.rsp-ql", PEOPLE) == TRACKED


def test_track_axel_sliding_cqels() -> None:
    assert ask("track-axel-sliding.cqels", PEOPLE) == ["room=RedRoom @[0, 20]", "room=BlueRoom @[0, 70]"]


def test_tumbling_cqels() -> None:
    assert ask("tumbling.cqels", PEOPLE) == ["room=RedRoom @[0, 20]", "room=BlueRoom @[0, 70]"]


def test_track_3_latest_c_sparql() -> None:
    """The last three triples; Axel stands in two of them at 70."""
    assert ask("track-3-latest.c-sparql", PEOPLE) == [
        "who=axel @[20, 20]",
        "who=darko @[20, 20]",
        "who=axel @[20, 70]",
        "who=axel @[20, 70]",
        "who=darko @[20, 70]",
        "who=axel @[20, 130]",
        "who=darko @[20, 130]",
        "who=minh @[20, 130]",
    ]


def test_last_three_cqels() -> None:
    assert ask("last-three.cqels", PEOPLE) == ["who=axel @[20, 20]", "who=darko @[20, 20]", "who=minh @[20, 130]"]


def observation(time: int, number: int, who: str, room: str) -> Event:
    triples = f""":obs{number} a <{PREFIXES["ssn"]}Observation> ; <{PREFIXES["ssn"]}observedBy> :sensor1 ;
        <{PREFIXES["ssn"]}observedProperty> :peopleInRoom ; <{PREFIXES["ssn"]}observedValue> :{who} ;
        <http://www.ontologydesignpatterns.org/ont/dul/DUL.owl#locatedIn> :{room}"""
    return item(time, triples, SOCIAL)


def test_last_observations_rsp_ql() -> None:
    """The last three observations of Axel, each of five triples; Darko's is none of them."""
    seen = [
        observation(1, 1, "axel", "r1"),
        observation(2, 2, "darko", "r2"),
        observation(3, 3, "axel", "r3"),
        observation(4, 4, "axel", "r4"),
        observation(5, 5, "axel", "r5"),
    ]
    found = ask("last-observations.rsp-ql.repaired", seen)
    assert found[-3:] == ["obs=obs3 room=r3 @[3, 5]", "obs=obs4 room=r4 @[3, 5]", "obs=obs5 room=r5 @[3, 5]"]
    assert [f.rsplit("@", 1)[1] for f in found] == ["[1, 1]"] + ["[1, 3]"] * 2 + ["[1, 4]"] * 3 + ["[3, 5]"] * 3


def test_predicate_window_as_a_network_of_queries() -> None:
    """The first query says each minute who was seen in (t − 300, t]; the second takes its last three triples."""
    engine = Engine(compile(text("predicate-window.c-sparql.repaired"), prefixes=PREFIXES))
    found = [*engine.push_all(PEOPLE), *engine.close()]
    first = [show(m) for m in found if m.query == f"<{EX}s1>"]
    assert first == [
        "s1 matches axel @[0, 300]",
        "s1 matches axel @[0, 300]",
        "s1 matches darko @[0, 300]",
        "s1 matches minh @[0, 300]",
        "s1 matches axel @[60, 360]",
        "s1 matches minh @[60, 360]",
        "s1 matches minh @[120, 420]",
    ]
    second = [show(m) for m in found if m.query == f"<{EX}s2>"]
    assert second == [
        *(f"who={x} @[300, 300]" for x in ("axel", "darko", "minh")),
        *(f"who={x} @[300, 360]" for x in ("axel", "minh")),
        *(f"who={x} @[360, 420]" for x in ("axel", "minh")),
    ]


# --- R2R ---


def test_rooms_and_persons_rsp_ql() -> None:
    assert ask("rooms-and-persons.rsp-ql", PEOPLE) == [
        "person=axel room=RedRoom @[0, 60]",
        "person=darko room=RedRoom @[0, 60]",
        "person=axel room=BlueRoom @[60, 120]",
        "person=minh room=RedRoom @[120, 180]",
    ]


FAST = [f"{10 * n} axel room{n} darko room{n % 4}" for n in range(1, 6)]


@pytest.mark.parametrize(("name", "stream"), [("fast-and-furious.c-sparql", "S1"), ("fast-and-furious.rsp-ql", SOCIAL)])
def test_fast_and_furious(name: str, stream: str) -> None:
    """Axel is in five rooms within five minutes, Darko in four."""
    assert ask(name, rooms(stream, *FAST)) == ["person=axel rooms=5 @[0, 300]"]


MEETING = ("1 axel red", "3 darko red", "7 minh red")


def test_is_with_rsp_ql() -> None:
    assert ask("is-with.rsp-ql", rooms(SOCIAL, *MEETING)) == ["axel isWith darko @[0, 3]", "darko isWith axel @[0, 3]"]


def test_is_with_cqels() -> None:
    assert ask("is-with.cqels", rooms("s1", *MEETING)) == ["axel isWith darko @[0, 3]", "darko isWith axel @[0, 3]"]


def ep_sparql(name: str, events: list[Event]) -> list[str]:
    engine = Engine(compile(text(name), prefixes=PREFIXES))
    found = engine.push_all(events)
    return [show(m) for m in [*found, *engine.close()]]


def test_is_with_ep_sparql() -> None:
    """getDURATION() < 3 s: Axel and Darko within two seconds, Darko and Minh are four apart."""
    assert ep_sparql("is-with.ep-sparql", rooms("s1", *MEETING)) == [
        "axel isWith darko @[1, 3]",
        "darko isWith axel @[1, 3]",
    ]


OPTIONAL = ("10 axel room1", "20 darko room2", "400 minh room2")


def test_optional_c_sparql() -> None:
    assert ask("optional.c-sparql", rooms("S1", *OPTIONAL)) == [
        "person1=axel person2=darko @[0, 300]",
        "person2=minh @[300, 600]",
    ]


def test_optional_cqels_on_one_stream() -> None:
    assert ask("optional-1.cqels", rooms("S1", *OPTIONAL)) == [
        "person1=axel @[0, 10]",
        "person1=axel person2=darko @[0, 20]",
        "person2=minh @[100, 400]",
    ]


def test_optional_cqels_on_two_streams() -> None:
    one = rooms("S1", "10 axel room1")
    two = rooms("S2", "20 darko room2", "400 minh room2")
    assert ask("optional-2.cqels", [*one, *two]) == [
        "person1=axel @[0, 10]",
        "person1=axel person2=darko @[0, 20]",
        "person2=minh @[100, 400]",
    ]


DOCTORS = graph(f"{EX}profile", ":axel :hasDegree :doctorate")


def test_minus_c_sparql() -> None:
    """The windows are merged into the default graph; the profile stays a graph of its own."""
    seen = rooms("S1", "10 axel room1 darko room1", "20 minh room2")
    assert ask("minus.c-sparql.repaired", seen, background=DOCTORS) == ["person=darko @[0, 300]"]


def test_minus_cqels() -> None:
    seen = rooms("S1", "10 axel room1 darko room1", "20 minh room1")
    assert ask("minus.cqels.repaired", seen, background=DOCTORS) == ["person=darko @[0, 10]", "person=minh @[0, 20]"]


# --- R2S ---

AGAIN = [*PEOPLE[:2], *rooms(SOCIAL, "80 darko RedRoom"), *PEOPLE[2:]]


@pytest.mark.parametrize("name", ["istream.sparqlstream", "istream.rsp-ql"])
def test_istream(name: str) -> None:
    """Darko is in the red room in both first minutes: that is said once."""
    assert ask(name, AGAIN) == [
        "person=axel room=RedRoom @[0, 60]",
        "person=darko room=RedRoom @[0, 60]",
        "person=axel room=BlueRoom @[60, 120]",
        "person=minh room=RedRoom @[120, 180]",
    ]


def test_dstream() -> None:
    query = text("istream.rsp-ql").replace("ISTREAM", "DSTREAM")
    assert run(query, AGAIN, prefixes=PREFIXES) == [
        "person=axel room=RedRoom @[60, 120]",
        "person=axel room=BlueRoom @[120, 180]",
        "person=darko room=RedRoom @[120, 180]",
    ]


# --- time-aware operators ---

TOGETHER = ("10 axel red darko red", "40 axel blue darko blue")
LEVEL = "http://deri.org/floorplan/"
FLOOR = graph(LEVEL, f":red <{PREFIXES['lv']}sameLevelWith> :blue", f":blue <{PREFIXES['lv']}sameLevelWith> :red")


def test_sequence_c_sparql() -> None:
    """By timestamp(); DISTINCT in each evaluation, and one evaluation a second while both are in the window."""
    seen = rooms("S1", *TOGETHER)
    found = ask("sequence.c-sparql", seen, background=FLOOR)
    assert found[0] == "room_x=red room_y=blue @[0, 300]"
    assert found[-1] == "room_x=red room_y=blue @[9, 309]"  # (10, 310] has lost what was at 10
    assert len(found) == 10


def test_sequence_cqels() -> None:
    seen = [e._replace(stream="<http://deri.org/streams/S1>") for e in rooms("S1", *TOGETHER)]
    assert ask("sequence.cqels.repaired", seen, background=FLOOR) == ["room_x=red room_y=blue @[0, 40]"]


def test_sequence_ep_sparql() -> None:
    assert ep_sparql("sequence.ep-sparql", rooms("s1", *TOGETHER)) == ["room_x=red room_y=blue @[10, 40]"]


def test_equals_ep_sparql() -> None:
    assert ep_sparql("equals.ep-sparql", rooms("s1", *TOGETHER)) == ["room_x=red room_y=blue @[10, 40]"]


def moves(count: int) -> list[Event]:
    return rooms("S1", *(f"{10 * n} axel r{n} darko r{n}" for n in range(count)))


def test_repetition_c_sparql() -> None:
    """More than three different pairs: of four rooms in turn there are six ordered pairs, of three rooms three."""
    links = [f":r{a} <{PREFIXES['lv']}sameLevelWith> :r{b}" for a in range(4) for b in range(4) if a != b]
    plan = graph(LEVEL, *links)
    found = ask("repetition.c-sparql", moves(4)[1:] + rooms("S1", "40 axel r0 darko r0"), background=plan)
    assert found[0] == "nroom=6 @[0, 300]"
    assert ask("repetition.c-sparql", moves(4)[1:], background=plan) == []


def test_repetition_as_a_count_over_seq() -> None:
    """What [REQ] asks for, in EP-SPARQL inside a window: pairs of rooms within ten minutes, at least three."""
    query = """SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :S1 [RANGE PT10M] WHERE {
        { SELECT DISTINCT ?x ?y { WINDOW :w { MATCH {
            {:axel :isIn ?x. :darko :isIn ?x.} SEQ {:axel :isIn ?y. :darko :isIn ?y.} } } } } }
        HAVING (COUNT(*) >= 3)"""
    assert run(query, moves(4)[1:]) == ["n=3 @[0, 600]"]
    assert run(query, moves(3)[1:]) == []


def test_within_bounds_a_pattern() -> None:
    """[REQ] WITHIN: a pattern occurs within an interval."""
    query = """SELECT ?x ?y FROM NAMED WINDOW :w ON :S1 [RANGE PT10M] WHERE { WINDOW :w { MATCH {
        { {:axel :isIn ?x} SEQ {:axel :isIn ?y} } WITHIN 15 SECONDS } } }"""
    assert run(query, moves(4)[1:]) == ["x=r1 y=r2 @[0, 600]", "x=r2 y=r3 @[0, 600]"]


# --- other operators ---


def test_rescan() -> None:
    """A stored graph that changes; the query looks at it again after twenty seconds at the earliest."""
    looked = []

    def locations(t: int) -> list[tuple[str, str, str]]:
        looked.append(t // SECOND)
        return [(f"<{EX}sensor>", f"<{EX}at>", f'"{t // SECOND}"')]

    query = """SELECT ?place FROM :locations [RESCAN 20 SECONDS] FROM NAMED WINDOW :w ON :s [RANGE 10 TUMBLING]
        WHERE { WINDOW :w { ?s :sees ?x } ?s :at ?place }"""
    events = [item(t, ":sensor :sees :cat") for t in range(5, 50, 10)]
    assert run(query, events, graphs={f"{EX}locations": locations}) == [
        "place=10 @[0, 10]",
        "place=10 @[10, 20]",
        "place=30 @[20, 30]",
        "place=30 @[30, 40]",
        "place=50 @[40, 50]",
    ]
    assert looked == [10, 30, 50]


PLACES = """SELECT ?place FROM :places [RESCAN 20 SECONDS] FROM NAMED WINDOW :w ON :s [RANGE 10 TUMBLING]
    WHERE { WINDOW :w { ?s :sees ?x } ?s :at ?place }"""


def test_rescan_reads_files_again(tmp_path: Path) -> None:
    """The file says :lab at first; it is changed at 15, and looked at again at 30."""
    places = tmp_path / "places.ttl"

    def is_at(place: str) -> None:
        places.write_text(f"@prefix : <{EX}> . :sensor :at :{place} .", encoding="utf-8")

    is_at("lab")
    engine = Engine(PLACES, named={f"{EX}places": [places]})
    found = list(engine.push_all(item(t, ":sensor :sees :cat") for t in (5, 12)))
    is_at("roof")
    found += [*engine.push_all(item(t, ":sensor :sees :cat") for t in (25, 31)), *engine.close()]
    assert [show(m) for m in found] == [
        "place=lab @[0, 10]",
        "place=lab @[10, 20]",
        "place=roof @[20, 30]",
        "place=roof @[30, 40]",
    ]


def test_rescan_of_what_cannot_be_read_again_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing says from where"):
        Engine(PLACES, background=graph(f"{EX}places", ":sensor :at :lab"))
    with pytest.raises(QueryError, match="RESCAN is for queries over windows"):
        compile("SELECT ?x FROM :places [RESCAN 20 SECONDS] { ?x :at ?y }")


# Axel and Darko enter and leave, as in [REQ]
DOORS = [
    item(2, ":axel :enter :RoomA"),
    item(3, ":darko :enter :RoomA"),
    item(6, ":axel :leave :RoomA . :axel :enter :RoomB"),
    item(8, ":darko :leave :RoomA . :darko :enter :RoomB"),
]


def test_facts_since_and_till_tef_sparql() -> None:
    """True from the SINCE event till the TILL event, as an occurrence with that interval."""
    assert ask("fact.tef-sparql", DOORS) == ["axel isIn RoomA @[2, 6]", "darko isIn RoomA @[3, 8]"]


def test_facts_since_and_till_as_a_rule() -> None:
    """The same in EP-SPARQL, for people who do not enter a room twice."""
    fact = "CONSTRUCT { ?user :isIn ?room } { ?user :enter ?room } SEQ { ?user :leave ?room }"
    engine = Engine(compile(fact))
    found = [*engine.push_all(DOORS), *engine.close()]
    assert [show(m) for m in found] == ["axel isIn RoomA @[2, 6]", "darko isIn RoomA @[3, 8]"]


def test_facts_current_every_three_seconds_tef_sparql() -> None:
    """At 3 both are in room A, at 6 Axel has just gone to room B, at 9 Darko is there too."""
    assert ask("count-facts.tef-sparql.repaired", DOORS) == [
        "ROOM=RoomA USER=2 @[2, 3]",
        "axel isIn RoomA @[2, 6]",
        "ROOM=RoomA USER=1 @[3, 6]",
        "ROOM=RoomB USER=1 @[3, 6]",
        "darko isIn RoomA @[3, 8]",
        "ROOM=RoomB USER=2 @[6, 9]",
    ]


def test_facts_current_every_three_seconds_rsp_ql() -> None:
    """The number of people in each room, every three seconds: those whose last entering has no later leaving."""
    query = """SELECT ?room (COUNT(?user) AS ?n) FROM NAMED WINDOW :w ON :s [LANDMARK 0] REPORT PERIODIC PT3S
        WHERE { WINDOW :w { ?user :enter ?room .
            FILTER(COALESCE(timestamp(?user :leave ?room) < timestamp(?user :enter ?room), true)) } }
        GROUP BY ?room"""
    assert run(query, DOORS) == [
        "n=2 room=RoomA @[0, 3]",
        "n=1 room=RoomA @[0, 6]",
        "n=1 room=RoomB @[0, 6]",
        "n=2 room=RoomB @[0, 9]",
    ]


def test_enter_and_left_counts_c_sparql() -> None:
    """[REQ] writes `SELECT (…) ?room` and three variables of the stream itself; the second query reads what the
    first one makes when it is put on the same stream."""
    fb, uc = "<http://…/fb>", PREFIXES["uc"]
    events = [
        item(1, ":axel :enter :A . :darko :enter :A")._replace(stream=fb),
        item(2, ":axel :left :A . :minh :enter :B . :minh :left :B")._replace(stream=fb),
        item(2, f":A <{uc}currentCount> 3 ; <{uc}enterCount> 2 ; <{uc}leftCount> 1")._replace(stream=fb),
    ]
    found = ask("enter-left-counts.c-sparql", events)
    assert found == [
        "A counts#enterCount 2. A counts#leftCount 1 @[0, 3]",
        "B counts#enterCount 1. B counts#leftCount 1 @[0, 3]",
        "A counts#currentCount 4 @[0, 3]",
    ]


# --- what cannot be run says what to write instead ---


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("last-prices.cql", "here the last five triples of a stream are SELECT"),
        ("rescan.sneeql", "here a stored graph is read again with FROM"),
        ("repetition.esper", "this is Esper's language"),
        ("facts.esper", "this is Esper's language"),
        ("enter-left-counts.esper", "this is Esper's language"),
        ("count-facts.tef-sparql", "a comment begins with '#'"),
        ("predicate-window.c-sparql", r"write \[RANGE TRIPLES 3\]"),
    ],
)
def test_other_languages(name: str, advice: str) -> None:
    with pytest.raises(QueryError, match=advice):
        compile(text(name), prefixes=PREFIXES)


def test_every_printed_query_is_looked_at_here() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    for path in REQ.glob("*.rq"):
        name = path.name.removesuffix(".rq")
        repaired = (REQ / f"{name}.repaired.rq").exists()
        assert repaired or f'"{name}"' in here, name
