"""What an editor is told, by functions of texts and over the protocol, and the files of ``editors/``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from etalis_compiler.ast import Operator
from etalis_compiler.lexing import AGGREGATES, BUILTINS
from etalis_compiler.parser import keywords, parse
from etalis_rules.durations import UNITS

from etalis_py.editor.features import complete, diagnose, hover, tidy
from etalis_py.editor.operators import OPERATORS, WORDS
from tests.test_docs import PAGES, blocks

ROOT = Path(__file__).parents[2]
EDITORS = ROOT / "editors" / "vscode"
RISING = "SELECT ?c { { ?c :price ?x } SEQ { ?c :price ?y } }"


# --- texts -------------------------------------------------------------------------


def test_faults_and_doubts_are_those_of_check() -> None:
    (fault,) = diagnose("SELECT ?x\n{ ?x :p }")
    assert (fault.severity, fault.line, fault.column, fault.token) == ("error", 2, 9, "}")
    assert [doubt.severity for doubt in diagnose(RISING)] == ["warning"]
    assert diagnose(" \n") == []


def test_an_operator_is_explained_where_it_stands() -> None:
    assert (hover(RISING, 0, RISING.index("SEQ") + 1) or "").startswith("`{A} SEQ {B}`\n\nA ends before B starts")
    assert hover("PREFIX ex: <http://ex/>\nASK { ?c ex:p 1 }", 1, 12) == "`<http://ex/p>`"
    assert hover(RISING, 0, 8) is None
    session = "ASK { { ?u :p ?x } REPEAT 1 OR MORE BY ?u GAP 1 h MAXIMAL AS (LAST(?x) AS ?l) }"
    for word, meaning in (("GAP", "a new run"), ("MAXIMAL", "when it is over"), ("LAST", "last element of a run")):
        assert meaning in (hover(session, 0, session.index(word) + 1) or "")
    assert hover(RISING, 7, 0) is None


def test_what_may_stand_next() -> None:
    assert [name for name, _ in complete(RISING + " FILTER (?", 0, len(RISING) + 10)] == ["?c", "?x", "?y"]
    text = RISING + "\nFILTER (?"
    assert complete(text, 1, 9) == [("?c", "variable"), ("?x", "variable"), ("?y", "variable")]
    assert complete(RISING + "\n?c :pr", 1, 6) == [(":price", "name")]
    offered = dict(complete(RISING + "\n", 1, 0))
    assert offered["NEXT"] == "{A} NEXT {B}"
    assert {"SELECT", "WITHIN", "rdfs:"} <= set(offered)


def test_a_text_is_tidied_and_stays_the_same_program() -> None:
    assert tidy("select ?c where {{?c :p ?x} SEQ {?c :q ?y}}") == (
        "SELECT ?c\nWHERE {\n  { ?c :p ?x . }\n  SEQ\n  { ?c :q ?y . }\n}\n"
    )
    assert tidy("SELECT ?c { ?c :p }") is None
    commented = '# why\nSELECT ?c {\n{ ?c :p """a {\n  b""" } # not a brace: {\n  } UNION {\n ?c :q 1\n}\n'
    assert (
        tidy(commented) == '# why\nSELECT ?c {\n  { ?c :p """a {\n  b""" } # not a brace: {\n} UNION {\n  ?c :q 1\n}\n'
    )


QUERIES = [block.text for page in PAGES for block in blocks(page) if block.language == "sparql"]


def test_every_query_of_the_documentation_survives() -> None:
    for query in QUERIES:
        text = tidy(query)
        assert text is not None
        assert parse(text).queries == parse(query).queries
        assert tidy(text) == text


# --- the protocol ---------------------------------------------------------------------


class Client:
    """Speaks with ``etalis lsp`` as an editor does."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "etalis_py.cli.main", "lsp"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.number = 0

    def tell(self, method: str, params: Any, **more: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def hear(self, **wanted: Any) -> Any:
        """The next message with these members."""
        assert self.process.stdout
        while True:
            length = 0
            while header := self.process.stdout.readline().strip():
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            message = json.loads(self.process.stdout.read(length))
            if all(message.get(name) == value for name, value in wanted.items()):
                return message

    def ask(self, method: str, params: Any) -> Any:
        self.number += 1
        self.tell(method, params, id=self.number)
        return self.hear(id=self.number)["result"]


def test_an_editor_is_served() -> None:
    client = Client()
    try:
        abilities = client.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})["capabilities"]
        assert abilities["hoverProvider"]
        assert abilities["documentFormattingProvider"]
        client.tell("initialized", {})
        # 𝄞 is one character and two units of UTF-16, in which editors count.
        text = 'SELECT ?c {\n  ?c :n "𝄞" ; :p }'
        document = {"uri": "file:///q.rq", "languageId": "ep-sparql", "version": 1, "text": text}
        client.tell("textDocument/didOpen", {"textDocument": document})
        (fault,) = client.hear(method="textDocument/publishDiagnostics")["params"]["diagnostics"]
        assert fault["range"]["start"] == {"line": 1, "character": 18}
        assert (fault["severity"], fault["code"], fault["source"]) == (1, "syntax", "etalis")
        named = {"textDocument": {"uri": "file:///q.rq", "version": 2}}
        client.tell("textDocument/didChange", {**named, "contentChanges": [{"text": RISING}]})
        (doubt,) = client.hear(method="textDocument/publishDiagnostics")["params"]["diagnostics"]
        assert doubt["severity"] == 2
        place = {"line": 0, "character": RISING.index("SEQ")}
        assert "ends before" in client.ask("textDocument/hover", {**named, "position": place})["contents"]["value"]
        items = client.ask("textDocument/completion", {**named, "position": {"line": 0, "character": 0}})["items"]
        assert "SEQ" in {item["label"] for item in items}
        options = {"tabSize": 2, "insertSpaces": True}
        (edit,) = client.ask("textDocument/formatting", {**named, "options": options})
        assert edit["newText"].startswith("SELECT ?c\nWHERE {\n")
        assert client.ask("shutdown", None) is None
        client.tell("exit", None)
        assert client.process.wait(20) == 0
    finally:
        client.process.kill()
        client.process.communicate()


# --- the files of editors/ ---------------------------------------------------------------


GRAMMAR = json.loads((EDITORS / "syntaxes" / "ep-sparql.tmLanguage.json").read_text())["repository"]
COLOURED = {name: re.compile(rule["match"]) for name, rule in GRAMMAR.items() if "match" in rule}


def colour(text: str, at: int = 0) -> str | None:
    """The rule of the grammar that a word gets its colour from: the first one that matches there."""
    order = ("comment", "iri", "variable", "function", "operator", "keyword", "constant", "prefixed", "number")
    return next((name for name in order if COLOURED[name].match(text, at)), None)


def test_the_grammar_knows_every_word_of_the_server() -> None:
    patterns = json.loads((EDITORS / "syntaxes" / "ep-sparql.tmLanguage.json").read_text())["patterns"]
    assert {pattern["include"].removeprefix("#") for pattern in patterns} == set(GRAMMAR)
    called = {*BUILTINS, *AGGREGATES, "COUNT", "GROUP_CONCAT", "PREVIOUS", "FIRST", "LAST"}
    assert [word for word in sorted(called) if colour(f"{word}(") != "function"] == []
    assert [word for word in OPERATORS if word not in called and colour(word) not in ("operator", "keyword")] == []
    assert [word for word in WORDS if colour(word) not in ("operator", "keyword")] == []
    assert [unit for unit in UNITS if COLOURED["number"].fullmatch(f"10 {unit}") is None] == []
    assert colour("SEQuence") is None


def test_the_page_of_the_server_colours_every_operator() -> None:
    assert {op.value for op in Operator} | {"REPEAT", "SELECT", "COUNT", "PREVIOUS"} <= keywords()
    assert not {"NAME", "VAR", "STR", "a"} & keywords()


def test_the_help_knows_every_operator() -> None:
    assert {op.value for op in Operator} <= {*OPERATORS}


def test_every_word_of_the_documentation_has_a_colour() -> None:
    for query in QUERIES:
        bare = re.sub(r'<[^<>\s]*>|"""(.|\n)*?"""|"[^"\n]*"|#.*|[?$:]\w+', lambda m: " " * len(m[0]), query)
        words = [m for m in re.finditer(r"(?<!\d )\b[A-Z]\w+", bare) if colour(bare, m.start()) is None]
        assert [m[0] for m in words] == []


def test_the_extension_is_complete() -> None:
    package = json.loads((EDITORS / "package.json").read_text())
    (language,), (grammar,) = package["contributes"]["languages"], package["contributes"]["grammars"]
    for name in (
        package["main"],
        language["configuration"],
        grammar["path"],
        ".vscode/launch.json",
        ".vscode/tasks.json",
    ):
        assert (EDITORS / name).is_file(), name
    assert set(re.findall(r"npm run (\w+)", (EDITORS / "README.md").read_text())) == set(package["scripts"])
    assert grammar["language"] == language["id"]
    assert f'language: "{language["id"]}"' in (EDITORS / "extension.js").read_text()
