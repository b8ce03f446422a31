"""Sources of bytes: files (also gzip, also growing), standard input, sockets, open files; and their format.

Everything is read in blocks, so memory does not grow with the input.  ``None`` in a block stream is a silence: nothing
arrived for the idle time.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import os
import queue
import stat
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeVar

from etalis_py.events.errors import StreamError, no_such_file
from etalis_py.streams.growing import Follow, FollowedFile
from etalis_py.streams.objects import is_object, name_of, open_object
from etalis_py.streams.sockets import Connection, is_socket

T = TypeVar("T")
BLOCK = 1 << 18
SNIFF = 1 << 16
LONGEST_LINE = 1 << 26
_MANY = 1 << 20  # bytes that are worth numpy
_WAITING, _AHEAD = 64, 2  # most items that wait to be taken from another thread
SLICE = 0.2  # seconds of waiting after which it is looked whether somebody wishes to stop

FORMATS = {
    "nq": "N-Quads", "nt": "N-Triples", "trig": "TriG", "ttl": "Turtle", "jsonl": "JSON lines", "csv": "CSV",
    "jelly": "Jelly", "parquet": "Parquet", "arrow": "Arrow",
}  # fmt: skip
MAPPED = ("csv", "jsonl", "parquet", "arrow")  # may have a mapping
IN_BLOCKS = ("csv", "jsonl", "nq")  # have lines: several processes can read their blocks
WHOLE = ("parquet", "arrow")  # can only be read once they are complete
_SUFFIXES = {"ndjson": "jsonl", "turtle": "ttl", "tsv": "csv", "nquads": "nq", "ntriples": "nt"}
_SUFFIXES |= {"pq": "parquet", "feather": "arrow", "ipc": "arrow", "arrows": "arrow"}


def format_of(name: str) -> str:
    """The format that a file name implies, or ``""``; a compression suffix does not count."""
    stem = name_of(name).lower().removesuffix(".gz")
    suffix = stem.rpartition(".")[2] if "." in stem else ""
    suffix = _SUFFIXES.get(suffix, suffix)
    return suffix if suffix in FORMATS else ""


def expand(source: str) -> list[str]:
    """The files that a source names: itself, or the sorted matches of a glob."""
    if source == "-" or is_object(source) or not any(char in source for char in "*?[") or os.path.exists(source):
        return [source]
    paths = sorted(glob.glob(source, recursive=True))
    if not paths:
        raise StreamError("no file matches this pattern", source=source, hint="check the path; quote it for the shell")
    return paths


class OpenedInput:
    """One opened input.  ``peek()`` shows its beginning without using it up; ``raw`` is the (unpacked) byte stream."""

    __slots__ = ("_fresh", "_head", "_owned", "name", "offset", "raw", "taken")

    def __init__(self, source: str | os.PathLike[str] | IO[bytes], *, follow: Follow | None = None) -> None:
        self._head = b""
        self.offset = self.taken = 0  # where the lines that were read last begin and end
        if isinstance(source, (str, os.PathLike)):
            self.name = os.fspath(source)
            self._owned = self.name != "-"
            self.raw: Any = sys.stdin.buffer if self.name == "-" else _open(self.name, follow)
        else:
            if isinstance(source, io.TextIOBase):
                raise StreamError("a text file cannot be read here", hint="open it in binary mode ('rb')")
            self.name = str(getattr(source, "name", "<input>"))
            self._owned = False
            self.raw = source
        self._fresh = True

    def _unpack(self) -> None:
        """Look at the first two bytes (only on the first read: a live source may not have them yet)."""
        self._fresh = False
        head = self.read_some(2)
        if head == b"\x1f":
            head += self.read_some(1)
        self._head = head
        if head[:2] == b"\x1f\x8b":
            self.raw = gzip.GzipFile(fileobj=_Rejoined(head, self.raw))  # type: ignore[call-overload]
            self._head = b""

    @property
    def path(self) -> str:
        """The file of this input, if it is opened here and read without unpacking; known after the first read."""
        apart = isinstance(self.raw, (gzip.GzipFile, Connection)) or is_object(self.name)
        return self.name if self._owned and not apart else ""

    @property
    def file_path(self) -> str:
        """The path of this input, packed or not, if it is a file that was opened here."""
        return self.name if self._owned and not isinstance(self.raw, Connection) and os.path.isfile(self.name) else ""

    @property
    def is_complete(self) -> bool:
        """Whether it is a file or an object that was opened here, packed or not, and no pipe: all of it is there."""
        return bool(self.file_path) or (self._owned and is_object(self.name))

    @property
    def is_file(self) -> bool:
        """Whether its bytes are in a file, which may be standard input, or in memory."""
        if isinstance(self.raw, (Connection, gzip.GzipFile)):
            return False
        if is_object(self.name):
            return True
        try:
            return stat.S_ISREG(os.fstat(self.raw.fileno()).st_mode)
        except (AttributeError, OSError):
            return isinstance(self.raw, io.BytesIO)

    @property
    def is_unpacked(self) -> bool:
        """Whether its bytes are unpacked here; known after the first read."""
        return isinstance(self.raw, gzip.GzipFile)

    def failure(self, error: Exception, line: int = 0) -> StreamError:
        if isinstance(error, StreamError):
            return error.at(self.name, line)
        if isinstance(error, FileNotFoundError):
            return no_such_file(self.name)
        if isinstance(error, (EOFError, zlib.error, gzip.BadGzipFile)):
            return StreamError(
                f"the gzip data is damaged or cut off ({error})", source=self.name, line=line, hint="fetch it again"
            )
        return StreamError(f"cannot be read: {getattr(error, 'strerror', None) or error}", source=self.name, line=line)

    def read_some(self, size: int = BLOCK) -> bytes:
        """At most ``size`` bytes, as soon as there are some; empty at the end."""
        if self._fresh:
            self._unpack()
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        read = getattr(self.raw, "read1", None) or self.raw.read
        return read(size)  # type: ignore[no-any-return]

    # pyoxigraph and others call ``read``: give them what is available, so that a slow input is parsed as it arrives.
    read = read_some

    def peek(self, size: int = SNIFF) -> bytes:
        """The beginning of the input; blocks only until something is available."""
        try:
            if self._fresh:
                self._unpack()
            # One whole non-empty line is enough: more may take long to come.
            while len(self._head) < size and (len(self._head) <= 3 or b"\n" not in self._head.lstrip()):
                if not self._read_ahead(size):
                    break
        except (OSError, EOFError, zlib.error) as error:
            raise self.failure(error) from None
        return self._head[:size]

    def _read_ahead(self, size: int) -> bytes:
        read = getattr(self.raw, "read1", None) or self.raw.read
        more = read(size)
        self._head += more
        return more  # type: ignore[no-any-return]

    def seek(self, offset: int) -> None:
        """Go on from a place in the file, which has not been read yet and is not packed."""
        self._fresh, self._head, self.offset = False, b"", offset
        self.raw.seek(offset)

    def close(self) -> None:
        if self._owned:
            self.raw.close()


class _Rejoined:
    """A byte stream with its first bytes put back."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def read(self, size: int = -1) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        read = getattr(self._rest, "read1", None) or self._rest.read
        return read(size)

    def close(self) -> None:
        self._rest.close()


def _open(path: str, follow: Follow | None) -> Any:
    if is_socket(path):
        return Connection(path)
    if is_object(path):
        return open_object(path)
    try:
        file = Path(path).open("rb")  # noqa: SIM115 (the Source closes it)
    except FileNotFoundError:
        raise no_such_file(path) from None
    except IsADirectoryError:
        raise StreamError(
            "this is a folder", source=path, hint=f"name its files with a pattern, such as '{path.rstrip('/')}/*.nq'"
        ) from None
    except OSError as error:
        raise StreamError(f"cannot be opened: {error.strerror or error}", source=path) from None
    return FollowedFile(file, follow) if follow else file


class Patience:
    """How long a live source waits for more: ``idle`` seconds, or until ``wake``, a time of ``time.monotonic``.

    ``gathers``: bursts are wanted.
    """

    __slots__ = ("gathers", "hurried", "idle", "wake")

    def __init__(self, idle: float) -> None:
        self.idle = idle
        self.wake: float | None = None
        self.gathers = False
        self.hurried = False

    def hurry(self) -> None:
        """End the wait that is going on, if there is one: a silence comes within ``SLICE`` seconds."""
        self.hurried = True

    def wait(self, wait: Callable[[float], Any]) -> Any:
        """What a wait of at most these seconds gives, in slices: the true value, or None once the patience ends."""
        end = time.monotonic() + self.seconds()
        while not self.hurried:
            rest = end - time.monotonic()
            if given := wait(min(max(rest, 0.0), SLICE)):
                return given
            if rest <= SLICE:
                return None
        self.hurried = False
        return None

    def seconds(self) -> float:
        """The longest wait from now on."""
        return self.idle if self.wake is None else min(self.idle, max(0.0, self.wake - time.monotonic()))


class Burst(NamedTuple):
    """Everything that follows was available at once, up to the burst that is not ``open``; see ``Stream.gather``."""

    open: bool


Block = tuple[str, int] | Burst | None
"""Whole lines, with the number of the first; the beginning or end of a burst; a silence."""


class Marking(Protocol):
    """Something with bursts: it is given the function that puts a mark among the items."""

    put: Callable[[Any], object]


def with_ticks(items: Iterable[T], patience: Patience | None, marking: Marking | None = None) -> Iterator[T | None]:
    """The same items, and ``None`` whenever the patience ends before one comes (a thread then produces them)."""
    if patience is None:
        yield from items
        return
    other = _OtherThread(items, _WAITING)
    if marking is not None and patience.gathers:
        marking.put = lambda mark: other.put((True, mark))
    yield from other.items(lambda: patience.wait(other.taken))


def read_ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items; a thread produces the next two while the last one is used."""
    other = _OtherThread(items, _AHEAD)
    yield from other.items(other.next)


class _OtherThread:
    """A thread that produces items, at most so many more than are taken."""

    def __init__(self, items: Iterable[Any], most: int) -> None:
        self._items = items
        self._handed: queue.Queue[tuple[bool, Any]] = queue.Queue(maxsize=most)
        self._stopped = threading.Event()

    def put(self, entry: tuple[bool, Any]) -> bool:
        while not self._stopped.is_set():
            try:
                self._handed.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def next(self) -> tuple[bool, Any]:
        """What comes next: an item, or, if it is no item, the error that is the end, or None."""
        return self._handed.get()

    def taken(self, seconds: float) -> tuple[bool, Any] | None:
        with contextlib.suppress(queue.Empty):
            return self._handed.get(timeout=seconds) if seconds else self._handed.get_nowait()
        return None

    def items(self, wait: Callable[[], tuple[bool, Any] | None]) -> Iterator[Any]:
        """The items that ``wait`` gives, and None where it gives none."""
        threading.Thread(target=self._work, name="stream-reader", daemon=True).start()
        try:
            while True:
                entry = wait()
                if entry is None:
                    yield None
                    continue
                good, item = entry
                if not good:
                    if item is not None:
                        raise item
                    return
                yield item
        finally:
            self._stopped.set()

    def _work(self) -> None:
        try:
            for item in self._items:
                if not self.put((True, item)):
                    return
            self.put((False, None))
        except BaseException as error:  # handed over to the thread that takes the items, which raises it
            self.put((False, error))


def byte_blocks(source: OpenedInput, size: int = BLOCK) -> Iterator[bytes]:
    """The input in blocks as they arrive; errors of the system or of gzip name the input."""
    while True:
        try:
            block = source.read_some(size)
        except (OSError, EOFError, zlib.error) as error:
            raise source.failure(error) from None
        if not block:
            return
        yield block


class Marked(Protocol):
    """Takes the places from which a source can be read; ``start`` is the one from which it is read now."""

    start: Any
    read_to: int
    """Where the lines end that were read so far."""

    def mark(self, at: Any) -> None: ...


def line_blocks(
    source: OpenedInput,
    patience: Patience | None,
    on_error: Callable[[StreamError], None],
    *,
    returns: bool = False,
    tracker: Marked | None = None,
    returns_to_marks: bool = True,
) -> Iterator[Block]:
    """Blocks of whole lines as text, each a burst; a line that is not UTF-8 becomes empty; for ``returns`` see
    ``whole_lines``.  ``tracker`` learns how far the file was read.  With ``returns_to_marks`` it gets a mark at each
    block, its place in the file and the number of its first line, and reading begins at the mark that it has.
    """
    first = 1
    if tracker is not None and returns_to_marks and tracker.start is not None:
        offset, first = tracker.start
        source.seek(offset)
    for block in whole_lines(source, with_ticks(byte_blocks(source), patience), returns=returns, number=first):
        if block is None:
            yield None
            continue
        if tracker is not None:
            tracker.read_to = source.taken
            if returns_to_marks:
                tracker.mark([source.offset, block[1]])
        gathers = patience is not None and patience.gathers
        if gathers:
            yield Burst(True)
        yield from decoded(*block, on_error, returns=returns)
        if gathers:
            yield Burst(False)


def whole_lines(
    source: OpenedInput, blocks: Iterator[bytes | None], *, returns: bool = False, number: int = 1
) -> Iterator[tuple[bytes, int] | None]:
    """Blocks of whole lines, each with the number of its first line; silences pass.

    ``returns``: a carriage return alone ends a line, too, for the number of the next block.  ``number``: that of the
    first line.  ``source.offset`` is the place of the block in the input, ``source.taken`` that of its end.
    """
    rest: list[bytes] = []
    held = length = 0
    last = False
    while not last:
        block = next(blocks, b"")
        if block is None:
            yield None
            continue
        last = block == b""
        cut = len(block) if last else block.rfind(b"\n") + 1
        if not cut and not last:
            rest.append(block)
            held += len(block)
            if held > LONGEST_LINE:
                raise long_line(source.name, number)
            continue
        whole = b"".join((*rest, block[:cut]))
        rest = [block[cut:]] if cut < len(block) else []
        held = len(block) - cut
        if not whole:
            continue
        source.offset += length
        length = len(whole)
        source.taken = source.offset + length
        if number == 1 and whole.startswith(b"\xef\xbb\xbf"):
            whole = whole[3:]
        yield whole, number
        number += count_lines(whole, returns=returns)


def count_lines(whole: bytes, *, returns: bool) -> int:
    """How many lines end in these bytes; ``returns``: also by a carriage return alone."""
    if len(whole) < _MANY:
        lone = whole.count(b"\r") - whole.count(b"\r\n") if returns else 0
        return whole.count(b"\n") + lone
    import numpy as np  # takes a while to import

    data = np.frombuffer(whole, np.uint8)
    feeds = data == ord("\n")
    count = int(np.count_nonzero(feeds))
    if returns and b"\r" in whole:
        marks = data == ord("\r")
        count += int(np.count_nonzero(marks)) - int(np.count_nonzero(marks[:-1] & feeds[1:]))
    return count


def long_line(source: str, number: int) -> StreamError:
    """The error for a line that is longer than any."""
    hint = "is this really a line-based format? name the right one"
    return StreamError("a line of more than 64 MB", source=source, line=number, hint=hint)


def decoded(
    whole: bytes, number: int, on_error: Callable[[StreamError], None], *, returns: bool = False
) -> Iterator[tuple[str, int]]:
    """Lines as text, with the number of the first; one that is not UTF-8 is reported and becomes empty.

    The lines before it are given first, so that they are read even if the report ends the reading.  ``returns``: a
    carriage return alone ends a line, too.
    """
    try:
        text = whole.decode("utf-8")
    except UnicodeDecodeError:
        yield from _decoded_lines(whole.splitlines(keepends=True) if returns else io.BytesIO(whole), number, on_error)
    else:
        yield text, number


def _decoded_lines(
    whole: Iterable[bytes], number: int, on_error: Callable[[StreamError], None]
) -> Iterator[tuple[str, int]]:
    lines: list[str] = []
    begin = 0
    for place, line in enumerate(whole):
        try:
            lines.append(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            if lines:
                yield "".join(lines), number + begin
            reason = f"byte {error.start + 1} of the line is not UTF-8"
            content = line.rstrip(b"\r\n")
            shown = content.decode("utf-8", "backslashreplace")
            on_error(StreamError(reason, line=number + place, text=shown, hint="convert the input to UTF-8"))
            end = line[len(content) :].decode("utf-8")
            if end == "\n" and lines and lines[-1].endswith("\r"):
                end = "\r\n"  # a line feed alone would end the line before it
            lines, begin = [end], place
    yield "".join(lines), number + begin


def now() -> int:
    """The wall clock in microseconds."""
    return time.time_ns() // 1000


def elapsed() -> int:
    """Microseconds by a clock that nobody sets: only differences matter."""
    return time.monotonic_ns() // 1000
