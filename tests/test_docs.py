"""Every snippet of the README and of ``docs/`` is run, and must do what is printed below it.

| block | what is done with it |
|---|---|
| ``sparql`` + ``trace`` + ``matches`` | the query runs over the trace (with ``turtle`` between: the background) |
| any of these with a file name, and ``jsonl``, ``csv``, ``toml`` | the file is there for the commands below |
| ``sparql`` alone | it compiles without a finding |
| ``console`` | the commands after ``$`` print what follows them; ``…`` stands for anything |
| ``pycon`` | a session of the Python prompt |
| ``sh`` | commands of this folder: their ``make`` targets exist |
| ``python`` | for the eye, but on the page about many queries it prints the ``text`` below it |
| ``text`` | for the eye |
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from etalis_py import Engine, Event, compile, event
from etalis_py.events.clock import Clock, clock_of
from etalis_py.knowledge import load
from etalis_py.streams.write_table import show_term
from tests.cli import in_process
from tests.processes import PATIENCE

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_COMMANDS = PAGES
PAGES = [page for page in PAGES if page.name != "rsp.md"]  # tests/windows/test_docs.py runs the queries of that one
_FENCE = re.compile(r"^```(\w*)[ ]*(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLAIN = re.compile(r"etalis( +('[^']*'|[\w./=:,@+-]+))*")
_EVENT = re.compile(r"(?:\[(\S+), (\S+)\]|(\S+))\s+(?:@<(\S+)>\s+)?(\S.*)")
_PREFIXES = {"": "http://example.org/", "xsd": "http://www.w3.org/2001/XMLSchema#"}


@dataclass(frozen=True)
class Block:
    language: str
    argument: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], m[3], text.count("\n", 0, m.start()) + 1) for m in _FENCE.finditer(text)]


def traced(pages: Sequence[Path]) -> Iterator[object]:
    """The queries with a trace: query, background, trace, matches."""
    for page in pages:
        found = blocks(page)
        for i, block in enumerate(found):
            after = [b.language for b in found[i + 1 : i + 4]]
            if block.language == "sparql" and after[:2] == ["trace", "matches"]:
                parts = (block.text, "", found[i + 1].text, found[i + 2].text)
            elif block.language == "sparql" and after == ["turtle", "trace", "matches"]:
                parts = (block.text, found[i + 1].text, found[i + 2].text, found[i + 3].text)
            else:
                continue
            yield pytest.param(*parts, id=f"{page.name}:{block.line}")


def read_trace(trace: str) -> tuple[list[Event], Clock]:
    """Lines such as ``1 :acme :price 10`` or ``[1, 4] :ann :in :room7``; the stream after the time, as ``@<urn:s>``."""
    events, clock = [], Clock("integer")
    for line in trace.splitlines():
        found = _EVENT.fullmatch(line.strip())
        assert found, f"no event: {line}"
        start, end = (found[1], found[2]) if found[1] else (found[3], found[3])
        clock = clock_of(start)
        stream = f"<{found[4]}>" if found[4] else ""
        made = event(found[5], 0, stream=stream)
        events.append(made._replace(start=clock.parse(start), end=clock.parse(end)))
    return events, clock


def answer(query: str, background: str, trace: str) -> str:
    """The matches as the documentation prints them: interval, then what is bound or constructed."""
    events, clock = read_trace(trace)
    knowledge = None
    if background:
        knowledge = load([list(event(background.strip().removesuffix("."), 0).triples)], cache=False)
    engine = Engine(compile(query + "\n"), background=knowledge, render=clock.render)
    columns = {output.query: output.variables for output in engine.outputs}
    lines = []
    for match in [*engine.push_all(events), *engine.close()]:
        if match.triples is not None:
            said = " ; ".join(" ".join(show_term(t, _PREFIXES) for t in triple) for triple in match.triples)
        elif match.boolean is not None:
            said = "yes" if match.boolean else "no"
        else:
            bound = [(name, match.bindings[name]) for name in columns[match.query] if name in match.bindings]
            said = "  ".join(f"?{name} = {show_term(term, _PREFIXES)}" for name, term in bound)
        when = "timeless" if match.start is None else f"[{match.start}, {match.end}]"
        lines.append(f"{when}  {said}".rstrip())
    return "\n".join(lines)


@pytest.mark.parametrize(("query", "background", "trace", "matches"), list(traced(PAGES)))
def test_a_query_over_a_trace(query: str, background: str, trace: str, matches: str) -> None:
    assert answer(query, background, trace) == matches.rstrip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_of_a_kind_that_is_run(page: Path) -> None:
    known = {"sparql", "trace", "matches", "turtle", "jsonl", "csv", "toml", "python", "console", "pycon", "sh", "text"}
    assert {block.language for block in blocks(page)} <= known
    for block in blocks(page):
        if block.language == "sparql":
            assert compile(block.text).warnings == (), f"{page.name}:{block.line}"


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_the_commands_print_what_is_printed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")
    for block in blocks(page):
        if block.argument:
            (tmp_path / block.argument).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, expected in _commands(block.text):
                printed = _printed(command, tmp_path)
                assert _like(printed, expected), f"{page.name}:{block.line}: {command}\n{printed}"


def _printed(command: str, folder: Path) -> str:
    """What a command prints: ``etalis`` with plain arguments in this process, anything else in a shell."""
    if _PLAIN.fullmatch(command):
        return in_process.run(shlex.split(command)[1:], folder, together=True).stdout
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=PATIENCE,
    )  # fmt: skip
    return done.stdout


def _commands(text: str) -> Iterator[tuple[str, str]]:
    command, expected = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, "\n".join(expected)
            command, expected = line[2:], []
        elif command.endswith("\\") and not expected:
            command = command[:-1] + line
        else:
            expected.append(line)
    yield command, "\n".join(expected)


def _like(found: str, expected: str) -> bool:
    """Is it what is expected, where ``…`` stands for anything?"""
    pattern = ".*".join(map(re.escape, expected.strip().split("…")))
    return re.fullmatch(pattern, found.strip(), re.DOTALL) is not None


@pytest.mark.usefixtures("kept_sources")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_does_what_is_printed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for block in blocks(page):
        if block.argument:
            (tmp_path / block.argument).write_text(block.text, encoding="utf-8")
        elif block.language == "pycon":
            test = parser.get_doctest(block.text, names, f"{page.name}:{block.line}", str(page), block.line)
            runner.run(test, clear_globs=False)
            names = test.globs
    assert runner.summarize(verbose=False).failed == 0


def test_the_programs_for_many_queries_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = blocks(ROOT / "docs" / "how-to-many.md")
    for block, after in pairwise(shown):
        if block.argument:
            (tmp_path / block.argument).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(block.text, names)
            assert after.language == "text"
            assert capsys.readouterr().out == after.text, f"line {block.line}"


def test_the_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(), re.MULTILINE)}
    assert named <= targets


def test_links_and_paths_lead_somewhere() -> None:
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text()):
            if target.startswith("http"):
                continue
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name}: {target}"
            assert not anchor or there.suffix != ".md" or anchor in anchors(there), f"{page.name}: {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_the_site_has_every_page() -> None:
    listed = set(re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {page.name for page in (ROOT / "docs").glob("*.md")}


def test_contributing_says_why_each_dependency_is_there() -> None:
    from tests.test_packaging import unnamed

    rows = set(re.findall(r"^\| `([\w-]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    assert not unnamed(rows)


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 900


@pytest.mark.parametrize("word", ["throttle", "session", "same row", "webhook", "sliding window", "watermark"])
def test_a_newcomers_word_is_in_the_glossary(word: str) -> None:
    """The search of the site goes by words, so those of other systems have to be there."""
    assert word in (ROOT / "docs" / "glossary.md").read_text().lower()


def sections() -> Iterator[tuple[str, str, str]]:
    """What the search of the site finds: the sections of all pages, by page, title and text."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        for section in re.split(r"^(?=##? )", _FENCE.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE):
            title, _, text = section.partition("\n")
            yield page.name, title.lstrip("# "), text


def searched(word: str) -> list[tuple[str, str]]:
    """The sections with a word; first those with it in the title, then by how often they have it."""
    hits = [
        (100 * title.lower().count(word) + text.lower().count(word), page, title) for page, title, text in sections()
    ]
    return [(page, title) for count, page, title in sorted(hits, key=lambda hit: -hit[0]) if count]


@pytest.mark.parametrize(
    ("word", "page", "title"),
    [
        ("throttle", "language.md", "SKIP, DISJOINT, THROTTLE: one match after the other"),
        ("debounce", "glossary.md", "Debounce"),
        ("session", "language.md", "REPEAT: runs and sessions"),
        ("session", "recipes.md", "End of a user's session"),
        ("same row", "glossary.md", "EVENT: the same row"),
        ("same row", "language.md", "EVENT: what one event says"),
        ("same row", "how-to-map.md", "What a row is"),
        ("webhook", "connect.md", "Out: a webhook"),
        ("sliding window", "rsp.md", "Windows: RSP-QL, RSEP-QL, C-SPARQL, CQELS, SPARQLstream"),
        ("watermark", "glossary.md", "Watermark"),
    ],
)
def test_a_search_leads_to_the_right_section(word: str, page: str, title: str) -> None:
    assert (page, title) in searched(word)[:5]
