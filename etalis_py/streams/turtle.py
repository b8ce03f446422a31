"""Turtle and TriG → quads, with pyoxigraph; also message logs in these syntaxes.

pyoxigraph knows no message delimiters (yet), so a small scanner cuts a log into its messages; it knows only what may
hide a delimiter: strings, IRIs, comments and braces.  Both spellings are read: ``VERSION "1.2-messages"`` with
``MESSAGE`` (or ``@message .``) of the W3C RSP community group's RDF Messages, and the ``# @message`` comments of its
first draft.  Prefixes carry over from message to message.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import pyoxigraph as ox
from etalis_rules.spelling import PREFIXES
from etalis_rules.terms import with_blanks

from etalis_py.events.errors import StreamError
from etalis_py.events.statement_lines import reason_of
from etalis_py.streams.blanks import Row
from etalis_py.streams.quads import BURST, BURST_OVER, MESSAGE_COMMENT, MESSAGES_HINT, NO_LOG, Quad
from etalis_py.streams.sources import Block, Burst, OpenedInput, Patience, with_ticks
from etalis_py.values.oxigraph_terms import parsed, spell, too_long

_COMMENT_DELIMITER = re.compile(rb"^[ \t]*#[ \t]*@message\b", re.MULTILINE)


class _Tee:
    """The source for pyoxigraph, a line at a time: the parser gives a quad as soon as it has read its end, so ``at`` is
    then the line where the quad ends.  Remembers the last blocks, to show the line of an error.

    ``put``, if given, receives the marks of bursts: one before each block, one when more input is needed.
    """

    def __init__(self, source: OpenedInput, *, refuse_delimiters: bool) -> None:
        self._source = source
        self._refuse_delimiters = refuse_delimiters
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=4)
        self._line = 1
        self._block, self._position = b"", 0
        self.at, self._ended = 0, True
        self.failed: StreamError | None = None
        self.put: Callable[[Quad], object] = lambda mark: None

    def read(self, size: int = -1) -> bytes:
        if self._position == len(self._block):
            self._block, self._position = self._read_block(), 0
        begin = self._position
        end = self._block.find(b"\n", begin) + 1 or len(self._block)
        if 0 < size < end - begin:
            end = begin + size
        if self._ended:
            self.at += 1
        line = self._block[begin:end]
        self._position, self._ended = end, line[-1:] == b"\n"
        return line

    def _read_block(self) -> bytes:
        self.put(BURST_OVER)
        try:
            block = self._source.read_some(1 << 16)
            if not self._recent and block.startswith(BOM_UTF8):  # the parser refuses it
                block = block.removeprefix(BOM_UTF8) or self._source.read_some(1 << 16)
        except Exception as error:
            # Kept as well as raised, because a parser may wrap it.
            self.failed = self._source.failure(error, self._line)
            raise self.failed from None
        if self._refuse_delimiters and b"@message" in block and (delimiter := _COMMENT_DELIMITER.search(block)):
            # The parser would skip the comment, and the end of a message with it.
            line = self._line + block.count(b"\n", 0, delimiter.start())
            self.failed = StreamError(NO_LOG, line=line, text="# @message", hint=MESSAGES_HINT)
            raise self.failed
        self.put(BURST)
        self._recent.append((self._line, block))
        self._line += block.count(b"\n")
        return block

    def line(self, number: int) -> str:
        """The text of a line, if it is remembered."""
        text, first = b"".join(block for _, block in self._recent), self._recent[0][0] if self._recent else 1
        lines = text.split(b"\n")
        index = number - first
        return lines[index].decode("utf-8", "backslashreplace").strip("\r") if 0 <= index < len(lines) else ""


def turtle_quads(
    source: OpenedInput,
    *,
    graphs: bool,
    rename: Callable[[str], str],
    patience: Patience | None,
    refuse_delimiters: bool,
    on_error: Callable[[StreamError], None],
) -> Iterator[Quad | None]:
    """The quads of a Turtle or TriG document, each with the line where it ends; a broken statement is left out."""
    tee = _Tee(source, refuse_delimiters=refuse_delimiters)
    parser = ox.parse(input=tee, format=ox.RdfFormat.TRIG if graphs else ox.RdfFormat.TURTLE)  # type: ignore[arg-type]
    yield from with_ticks(_quads(parser, tee, rename, on_error), patience, tee)


def _quads(
    parser: Iterator[ox.Quad], tee: _Tee, rename: Callable[[str], str], on_error: Callable[[StreamError], None]
) -> Iterator[Quad]:
    broken_line = repeated = 0
    while True:
        try:
            for quad in parser:
                s, p, o, g = spell(quad)
                if s[0] == "_":
                    s = rename(s)
                if o[0] != '"':
                    o = with_blanks(o, rename)
                if g and g[0] == "_":
                    g = rename(g)
                yield s, p, o, g, tee.at, ""
            return
        except (SyntaxError, ValueError, OSError) as error:
            if tee.failed:
                raise tee.failed from None
            line = getattr(error, "lineno", 0) or tee.at
            # The parser reports every token until it recovers: keep one report for each broken line.
            repeated = repeated + 1 if line == broken_line else 0
            if repeated == 0:
                on_error(StreamError(reason_of(error), line=line, text=tee.line(line), hint=_hint(error)))
            elif repeated > 10_000:
                raise StreamError("the rest cannot be read", line=line, hint="repair this line first") from None
            broken_line = line
        except MemoryError as error:
            raise StreamError(str(too_long(error)), line=tee.at, hint="shorten it, or leave it out") from None


_UNDECLARED = re.compile(r"The prefix ([^:\s]*):? has not been declared")


def _hint(error: Exception) -> str:
    if "MESSAGE" in str(error) or "@message" in str(error):
        return MESSAGES_HINT
    if undeclared := _UNDECLARED.search(str(error)):
        name = undeclared[1]
        return f"declare it above: @prefix {name}: <{PREFIXES.get(name, 'http://…')}> ."
    return "repair the document, or go on without this part: on_error='skip' (--on-error skip)"


_TOKEN = re.compile(
    r"""(?P<long>\"\"\"|''')"""
    r"""|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<directive>(?:@prefix|PREFIX)\s+(?P<prefix>[^\s:]*:)\s*<[^<>\s]*>(?:\s*\.)?"""
    r"""|(?:@base|BASE)\s+(?P<base><[^<>\s]*>)(?:\s*\.)?)"""
    r"""|(?P<version>(?:@version|VERSION)\s+["'](?P<label>[^"']*)["'](?:\s*\.)?)"""
    r"""|(?P<iri><[^<>"{}|^`\\\s]*>)"""
    r"""|(?P<comment>\#.*)"""
    r"""|(?P<at>(?<![^\s.])@message\b(?:\s*(?P<dot>\.))?)"""
    r"""|(?P<open>\{)|(?P<close>\})"""
    r"""|(?P<word>[^\s"'<>{}#@;,\[\]()]+)""",
    re.IGNORECASE,
)
_LONG_END = {'"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""'), "'''": re.compile(r"(?:[^'\\]|\\.|'(?!''))*'''")}


class Splitter:
    """Cuts a Turtle or TriG message log into messages, line by line; keeps open strings, braces, and the prefixes."""

    __slots__ = ("_depth", "_header", "_long", "_text")

    def __init__(self) -> None:
        self._depth = 0
        self._long = ""
        self._text: list[str] = []
        self._header: list[tuple[str, str]] = []

    @property
    def header(self) -> str:
        """The prefixes and the base that apply here, on one line."""
        return " ".join(text for _, text in self._header)

    def feed(self, line: str) -> Iterator[str | None]:
        """The parts of a line: text that belongs to the current message, and ``None`` where a message ends."""
        position = begin = 0
        while position < len(line):
            if self._long:
                end = _LONG_END[self._long].match(line, position)
                if end is None:
                    break
                self._long, position = "", end.end()
                continue
            token = _TOKEN.search(line, position)
            if token is None:
                break
            position = token.end()
            kind = token.lastgroup
            delimiter = (kind == "comment" and MESSAGE_COMMENT.match(token[0])) or (
                kind == "word" and token[0].upper() == "MESSAGE"
            )
            if kind == "at":
                if not token["dot"]:
                    raise StreamError("@message is written with a dot: @message .", text=line.strip())
                delimiter = True
            if delimiter:
                if self._depth:
                    raise StreamError("a message ends inside an open graph { … }", text=line.strip())
                yield line[begin : token.start()]
                yield None
                begin = position
            elif kind == "long":
                self._long = token[0]
            elif kind == "open":
                self._depth += 1
            elif kind == "close":
                self._depth -= 1
            elif kind == "version":
                yield line[begin : token.start()]
                begin = position
            elif kind == "directive":
                self._declare(token)
        yield line[begin:]

    def reset(self) -> None:
        """Forget what is open, after an error."""
        self._depth, self._long = 0, ""

    def _declare(self, token: re.Match[str]) -> None:
        name = token["prefix"] or ""
        self._header = [entry for entry in self._header if not (name and entry[0] == name)]
        if not name and ":" in token["base"] and self._header and self._header[-1][0] == "":
            self._header.pop()
        self._header.append((name, token[0]))


def split_messages(
    blocks: Iterable[Block], on_error: Callable[[StreamError], None]
) -> Iterator[tuple[str, str, int] | Burst | None]:
    """``(header, text, first line)`` of every message; a message that cannot be cut out is reported and left out."""
    splitter = Splitter()
    parts: list[str] = []
    header, first, broken, delimited = "", 1, False, False
    for block in blocks:
        if block is None or isinstance(block, Burst):
            yield block
            continue
        text, number = block
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        for offset, line in enumerate(lines):
            try:
                for part in splitter.feed(line):
                    if part is not None:
                        parts.append(part)
                        continue
                    if not broken:
                        yield header, "".join(parts), first
                    parts, header, first = [], splitter.header, number + offset
                    broken, delimited = False, True
                parts.append("\n")
            except StreamError as error:
                on_error(error.at("", number + offset))
                splitter.reset()
                broken = True
    rest = "".join(parts)
    if not broken and (not delimited or not is_blank(rest)):
        yield header, rest, first


def is_blank(text: str) -> bool:
    """Whether a message's text has nothing but white space, comments and directives."""
    skipped = ("comment", "directive", "version")
    return not _TOKEN.sub(lambda token: "" if token.lastgroup in skipped else token[0], text).strip()


def parse_rows(text: str, *, graphs: bool, header: str = "") -> list[Row]:
    """The rows of one message; SyntaxError (its line within the text) if it cannot be parsed.

    The header is in the first line, before the text.
    """
    whole = f"{header} {text}" if header else text
    return [spell(quad) for quad in parsed(whole, ox.RdfFormat.TRIG if graphs else ox.RdfFormat.TURTLE)]


def message_rows(
    messages: Iterable[tuple[str, str, int] | Burst | None], *, graphs: bool, on_error: Callable[[StreamError], None]
) -> Iterator[tuple[list[Row], int] | Burst | None]:
    """The rows of each message and the line where it starts; a message that cannot be parsed is reported whole."""
    for message in messages:
        if message is None or isinstance(message, Burst):
            yield message
            continue
        header, text, first = message
        try:
            yield parse_rows(text, graphs=graphs, header=header), first
        except (SyntaxError, ValueError) as error:
            line = first + (getattr(error, "lineno", 1) or 1) - 1
            on_error(StreamError(reason_of(error), line=line, text=f"{header}\n{text}".strip(), hint=_hint(error)))
