"""Message logs, in both spellings in circulation; the cases of the community group's interoperability tests."""

from __future__ import annotations

import pytest

from etalis_py.streams import StreamError

from .conftest import PREFIXES, brief

VERSION = 'VERSION "1.2-messages"\n'
LINE = "<urn:s{0}> <urn:p> <urn:o{0}> .\n"
ONE, TWO = LINE.format(1), LINE.format(2)
ALL = ["nt", "nq", "ttl", "trig"]


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize(
    ("text", "messages", "found"),
    [
        (VERSION + ONE, 1, ["s1 p o1"]),
        (VERSION + ONE + "MESSAGE\n" + TWO, 2, ["s1 p o1", "s2 p o2"]),
        (VERSION + "MESSAGE\n" + ONE, 2, ["s1 p o1"]),
        (VERSION + ONE + "MESSAGE\nMESSAGE\n" + TWO, 3, ["s1 p o1", "s2 p o2"]),
        (VERSION + ONE + "MESSAGE\n", 1, ["s1 p o1"]),
        (VERSION + ONE + TWO + "MESSAGE # a note\n" + ONE, 2, ["s1 p o1; s2 p o2", "s1 p o1"]),
        (ONE + "# @message a next message\n" + TWO + "# @message\n# @message\n", 3, ["s1 p o1", "s2 p o2"]),
    ],
    ids=["no delimiter", "two", "empty first", "empty between", "trailing", "several triples", "comments"],
)
def test_messages_of_a_log(stream, format: str, text: str, messages: int, found: list[str]) -> None:
    opened = stream(text, format=format)
    assert [line.split("] ")[1] for line in brief(opened)] == found
    assert opened.counters.messages == messages
    assert opened.counters.empty == messages - len(found)


def test_the_old_style_delimiter(events) -> None:
    text = '@version "1.2-messages" .\n@prefix : <urn:> .\n:s1 :p :o1 .\n@message .\n'
    text += ":s2 :p :o2 . @message . :s3 :p :o3 .\n"
    assert events(text, format="ttl") == ["[1000,1000] s1 p o1", "[1001,1001] s2 p o2", "[1002,1002] s3 p o3"]


def test_graph_names_are_kept(events) -> None:
    text = "<urn:s1> <urn:p> <urn:o> <urn:g1> .\nMESSAGE\n<urn:s2> <urn:p> <urn:o> <urn:g2> .\n"
    assert events(VERSION + text, format="nq") == ["g1[1000,1000] s1 p o", "g2[1001,1001] s2 p o"]


def test_default_and_named_graphs_of_one_message_are_one_act(events) -> None:
    text = "PREFIX : <urn:>\n:s1 :p :o1 .\n:g {\n :s2 :p :o2 .\n :s3 :p :o3 .\n}\nMESSAGE\n:s4 :p :o4 .\n"
    assert events(VERSION + text, format="trig") == [
        "[1000,1000] s1 p o1",
        "g[1000,1000] s2 p o2; s3 p o3",
        "[1001,1001] s4 p o4",
    ]


def test_prefixes_go_on_and_may_change(events) -> None:
    text = "PREFIX : <urn:>\n:a :p :b .\nMESSAGE\n:c :p :d .\nMESSAGE\nPREFIX : <urn:x->\n:e :p :f .\n"
    assert [line.split("] ")[1] for line in events(VERSION + text, format="ttl")] == ["a p b", "c p d", "x-e x-p x-f"]


@pytest.mark.parametrize("format", ALL)
def test_blank_nodes_are_scoped_to_their_message(stream, format: str) -> None:
    text = VERSION + "_:b0 <urn:p> <urn:o1> .\nMESSAGE\n_:b0 <urn:p> <urn:o2> .\n"
    one, other = (event.triples[0][0] for event in stream(text, format=format))
    assert one != other


@pytest.mark.parametrize("format", ALL)
def test_blank_node_labels_do_not_depend_on_the_place_in_the_log(stream, format: str) -> None:
    def labels(text: str) -> set[str]:
        timed = {"format": format, "time_predicate": "urn:at"}
        return {event.triples[0][0] for event in stream(VERSION + text, **timed)}

    one = "_:b0 <urn:at> 7 .\n" if format in ("ttl", "trig") else '_:b0 <urn:at> "7" .\n'
    other = one.replace("_:b0", "_:other").replace("7", "8")
    assert labels(one + "MESSAGE\n" + other) == labels(other + "MESSAGE\n" + one)


@pytest.mark.parametrize(
    "hidden", ['"""\nMESSAGE\n# @message\n"""', "'''\nMESSAGE\n'''", '"# @message"', "<urn:x#@message>"]
)
def test_what_only_looks_like_a_delimiter(stream, hidden: str) -> None:
    opened = stream(VERSION + f"<urn:a> <urn:p> {hidden} .\n", format="ttl")
    assert len(list(opened)) == opened.counters.messages == 1


def test_time_in_the_message(events) -> None:
    text = PREFIXES + ":o1 :value 5 ; :at 1 .\nMESSAGE\n:o2 :value 6 ; :at 2 .\nMESSAGE\n:o3 :value 7 .\n"
    assert events(VERSION + text, format="ttl", time_predicate="urn:at") == [
        "[1,1] o1 value 5; o1 at 1",
        "[2,2] o2 value 6; o2 at 2",
        "[1000,1000] o3 value 7",
    ]


def test_graphs_of_one_message_may_have_times_of_their_own(events) -> None:
    text = PREFIXES + ":g1 { :a :p 1 } :g1 prov:generatedAtTime 1 . :g2 { :a :p 2 } :g2 prov:generatedAtTime 2 ."
    assert events(VERSION + text, format="trig") == ["g1[1,1] a p 1", "g2[2,2] a p 2"]


def test_the_end_of_a_message_may_close_its_instant(events) -> None:
    text = VERSION + PREFIXES + ":o1 :at 1 .\nMESSAGE\n:o2 :at 2 .\n"
    found = events(text, format="ttl", time_predicate="urn:at", close_on_message=True)
    assert found == ["[1,1] o1 at 1", "Punctuation(time=1)", "[2,2] o2 at 2", "Punctuation(time=2)"]


@pytest.mark.parametrize("format", ALL)
def test_a_delimiter_outside_a_log_is_an_error(stream, format: str) -> None:
    with pytest.raises(StreamError, match="VERSION"):
        list(stream(ONE + "MESSAGE\n", format=format))


@pytest.mark.parametrize("format", ALL)
def test_a_comment_delimiter_far_into_a_document_is_an_error(stream, format: str) -> None:
    with pytest.raises(StreamError, match="message delimiter in what was taken for one document"):
        list(stream(ONE * 3000 + "# @message\n", format=format))
    as_log = stream(ONE * 3000 + "# @message\n" + TWO, format=format, messages=True)
    assert [len(event.triples) for event in as_log] == [1, 1]
    assert as_log.counters.messages == 2
    as_document = stream(ONE * 3000 + "# @message\n" + TWO, format=format, messages=False)
    assert sum(len(event.triples) for event in as_document) + as_document.counters.duplicates == 3001


def test_a_delimiter_without_its_dot(stream) -> None:
    with pytest.raises(StreamError, match="@message is written with a dot") as caught:
        list(stream(VERSION + ONE + "@message <urn:invalid>\n", format="ttl"))
    assert caught.value.line == 3


def test_a_delimiter_inside_an_open_graph(stream) -> None:
    with pytest.raises(StreamError, match="inside an open graph"):
        list(stream(VERSION + f"<urn:g> {{\n{ONE}MESSAGE\n{TWO}}}\n", format="trig"))


@pytest.mark.parametrize("format", ALL)
def test_a_message_with_an_unreadable_line_is_left_out_as_a_whole(stream, format: str) -> None:
    text = VERSION + ONE + "<urn:a> <urn:p> %% .\nMESSAGE\n" + TWO
    opened = stream(text, format=format, on_error="skip")
    assert [event.triples[0][0] for event in opened] == ["<urn:s2>"]
    assert opened.counters.errors == 1
    with pytest.raises(StreamError) as caught:
        list(stream(text, format=format))
    assert caught.value.line == 3


def test_one_time_for_all_is_not_for_a_log(stream) -> None:
    with pytest.raises(StreamError, match="not for a message log"):
        stream(VERSION + ONE, format="nt", at=7)
