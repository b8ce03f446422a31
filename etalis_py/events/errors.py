"""Errors at the edges: input that cannot be read (``StreamError``), output that cannot be written (``SinkError``)."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from pathlib import Path

from etalis_rules.messages import closest, printable


class StreamError(ValueError):
    """Input that cannot be read: where it is, what was found, what to do.

    ``line`` counts from 1 and is 0 if the input has no lines.  The command line turns it into exit code 1.  As text it
    has no control characters of the input; ``reason`` and ``text`` have them as they are.
    """

    def __init__(self, reason: str, *, source: str = "", line: int = 0, hint: str = "", text: str = "") -> None:
        self.reason, self.line, self.hint, self.text = reason, line, hint, text
        self.source = without_password(source)
        super().__init__(reason)

    def __str__(self) -> str:
        place = (
            f"{self.source}:{self.line}: " if self.source and self.line else f"{self.source}: " if self.source else ""
        )
        shown = f"\n  {self.text if len(self.text) <= 160 else self.text[:157] + '...'}" if self.text else ""
        return printable(f"{place}{self.reason}{shown}" + (f"\n  {self.hint}" if self.hint else ""))

    def at(self, source: str, line: int, text: str = "") -> StreamError:
        """The same error, with the place filled in if it was not known."""
        return StreamError(
            self.reason,
            source=self.source or source,
            line=self.line or line,
            hint=self.hint,
            text=self.text or text,
        )


def warn_caller(text: str) -> None:
    """Warn at the line outside this package that led here, however deep the reading of a stream is by then."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


def no_such_file(path: str, what: str = "stream") -> StreamError:
    """The error for a file that is not there, with the file that is probably meant."""
    near = name_like(path)
    hint = f"did you mean {near}?" if near else f"check the path of the {what}"
    return StreamError("there is no such file", source=path, hint=hint)


def name_like(path: str) -> str:
    """The path of the file in the same folder whose name is most like this one, "" if none is alike."""
    folder, name = os.path.split(path)
    try:
        files = sorted(entry.name for entry in os.scandir(folder or ".") if entry.is_file())
    except (OSError, ValueError):
        return ""
    near = closest(name, files)
    return os.path.join(folder, near) if near else ""


class SinkError(OSError):
    """Output that cannot be written (a full disk, a missing folder, a match that the format has no place for)."""

    def __init__(self, reason: str, *, target: str = "", hint: str = "") -> None:
        self.reason, self.target, self.hint = reason, without_password(target), hint
        super().__init__(reason)

    def __str__(self) -> str:
        place = f"{self.target}: " if self.target else ""
        return printable(f"{place}{self.reason}" + (f"\n  {self.hint}" if self.hint else ""))


class ClosedPipe(SinkError):
    """The reader of our output has closed it (``etalis run … | head``): a reason to stop quietly, not a failure."""


_PACKAGE = str(Path(__file__).parents[1]) + os.sep
PASSWORD = "a password does not belong in an address, where others see it"
_BEFORE_HOST = re.compile(r"^((?:\w+:)?\w[\w+.-]*://)([^/:@?#]*):[^/?#]*@")
_SETTING = re.compile(r"(?<=[?&])[\w.]*password=[^&#]*&?")
_SECRET = re.compile(
    r"(?i)(?<=[?&])([\w.-]*(?:token|secret|signature|credential|passw|passphrase)[\w.-]*|[\w.-]*key|pwd|sig|auth\w*)"
    r"=[^&#\s<>\"]+"
)
_PLACES = {
    "postgresql": "leave it out, and set PGPASSWORD or write it to ~/.pgpass",
    "postgres": "leave it out, and set PGPASSWORD or write it to ~/.pgpass",
    "redis": "leave it out, and set REDIS_PASSWORD",
    "rediss": "leave it out, and set REDIS_PASSWORD",
    "mqtt": "leave it out, and set MQTT_USERNAME and MQTT_PASSWORD",
    "mqtts": "leave it out, and set MQTT_USERNAME and MQTT_PASSWORD",
    "kafka": "put sasl.username=… and sasl.password=… into a file, and add ?config=FILE",
    "sse": "leave it out, and set SSE_TOKEN, which is sent as a bearer token",
    "ws": "leave it out, and set WEBSOCKET_TOKEN, which is sent as a bearer token",
    "wss": "leave it out, and set WEBSOCKET_TOKEN, which is sent as a bearer token",
    "webhook": "leave it out, and set ETALIS_WEBHOOK_SECRET, which signs what is posted",
    "http": "leave it out, and set ETALIS_TOKEN, or ETALIS_TOKEN_FILE for another machine",
    "https": "leave it out, and set ETALIS_TOKEN, or ETALIS_TOKEN_FILE for another machine",
    "s3": "leave it out, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a profile",
}


def without_password(address: str) -> str:
    """The address as it may be shown and stored.

    >>> without_password("redis://me:secret@host:6379/0?stream=t"), without_password("out.jsonl")
    ('redis://me@host:6379/0?stream=t', 'out.jsonl')
    >>> without_password("postgresql://host/shop?password=secret&table=t")
    'postgresql://host/shop?table=t'
    >>> without_password("wss://host/feed?access_token=3f9c&room=2")
    'wss://host/feed?access_token=…&room=2'
    """
    return without_tokens(_without_refused(address)) if "://" in address else address


def _without_refused(address: str) -> str:
    """Without a password that the environment or a file would give."""
    shown = _BEFORE_HOST.sub(r"\1\2@", address)
    return _SETTING.sub("", shown).rstrip("?&") if _SETTING.search(shown) else shown


def without_tokens(text: str) -> str:
    """A text with addresses in it, without what opens doors: some services want a token in the address itself."""
    return _SECRET.sub(r"\1=…", text)


def place_of_password(address: str) -> str:
    """Where the password belongs that stands in an address; empty if none does.

    >>> place_of_password("redis://:secret@host/0?stream=t"), place_of_password("redis://host/0?stream=t")
    ('leave it out, and set REDIS_PASSWORD', '')
    """
    if "://" not in address or _without_refused(address) == address:
        return ""
    scheme = address.partition("://")[0].lower().removeprefix("delta:").partition("+")[0]
    return _PLACES.get(scheme, "leave it out: it belongs in the environment or in a file")


def check_no_password(address: str, *, sink: bool = False, place: str = "") -> None:
    """Refuse an address with a password.  ``place``: where it belongs, if the scheme does not tell."""
    if not (hint := place_of_password(address)):
        return
    if sink:
        raise SinkError(PASSWORD, target=without_password(address), hint=place or hint)
    raise StreamError(PASSWORD, source=without_password(address), hint=place or hint)


def sink_error(error: OSError, target: str) -> SinkError:
    """The error to show the user for an operating-system error in writing."""
    if isinstance(error, SinkError):
        return error
    if isinstance(error, BrokenPipeError) or error.errno == errno.EPIPE:
        return ClosedPipe("the reader closed the pipe", target=target)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SinkError(
            "no space left on the device; what was written so far is not complete",
            target=target,
            hint="free some space or choose another place for the output, then run again",
        )
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return SinkError(
            "there is a file where the folder should be", target=target, hint="name a folder, or one to be made"
        )
    if error.errno == errno.EBADF:
        return SinkError("this is closed", target=target, hint="leave it open, or choose another place")
    if error.errno == errno.ELOOP:
        return _loop(target)
    if isinstance(error, FileNotFoundError):
        return SinkError("the folder does not exist", target=target, hint="create it or choose another place")
    if isinstance(error, PermissionError):
        return SinkError("no permission to write here", target=target, hint="choose another place")
    # Arrow's own text names the temporary file.
    return SinkError(os.strerror(error.errno) if error.errno else str(error), target=target)


def resolved(target: str | os.PathLike[str]) -> Path:
    """The file to which a path leads over links."""
    try:
        return Path(target).resolve()
    except RuntimeError:
        raise _loop(os.fspath(target)) from None


def _loop(target: str) -> SinkError:
    return SinkError(
        "this is a link that leads back to itself", target=target, hint="remove the link, or choose another place"
    )
