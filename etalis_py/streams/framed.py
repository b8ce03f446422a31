"""Messages as the clients of a schema registry write them: a zero byte, the number of a schema in four, the content.

    00 00000007 …      the content is Avro or JSON, as schema 7 says

Schemas come from a registry (``GET /schemas/ids/7``), or from a folder with files such as ``7.avsc`` (Avro) and
``7.json`` (JSON Schema); each is read once.  The content becomes a JSON text, which is read as that of any message:
logical types of Avro become dateTimes, dates and decimals.  Contents are not checked against a JSON Schema.

User and password of a registry come from ``SCHEMA_REGISTRY_USER`` and ``SCHEMA_REGISTRY_PASSWORD``.  Redirects are not
followed.  Avro needs fastavro: the extra ``avro``.
"""

from __future__ import annotations

import base64
import io
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from etalis_py.events.errors import StreamError, check_no_password
from etalis_py.streams.retries import asked_pause, pauses

HEAD = 5
_PATIENCE = 10.0
_JSON = msgspec.json.Encoder(decimal_format="number")


class Schema(NamedTuple):
    """``kind``: AVRO or JSON."""

    kind: str
    text: str


class RegistryUnavailable(StreamError):
    """The registry does not answer, or refuses to: this says nothing about the message."""


class SchemaFolder:
    """Schemas in files that are named by their numbers."""

    def __init__(self, path: str) -> None:
        self.name = path
        if not Path(path).is_dir():
            raise StreamError("there is no such folder", source=path, hint="it has files such as 7.avsc and 7.json")

    def schema(self, number: int) -> Schema:
        for ending, kind in ((".avsc", "AVRO"), (".json", "JSON")):
            file = Path(self.name) / f"{number}{ending}"
            if file.is_file():
                return Schema(kind, file.read_text(encoding="utf-8"))
        raise StreamError(f"{self.name} has no schema {number}", hint=f"add it as {number}.avsc or {number}.json")


class Registry:
    """The schemas of a registry over HTTP."""

    def __init__(self, url: str, sleep: Callable[[float], None] = time.sleep) -> None:
        split = urlsplit(url)
        if split.scheme not in ("http", "https") or not split.hostname:
            raise StreamError("this is not the address of a schema registry", source=url, hint="write http://host:8081")
        check_no_password(url, place="leave it out, and set SCHEMA_REGISTRY_USER and SCHEMA_REGISTRY_PASSWORD")
        self.name, self._sleep = url.rstrip("/"), sleep
        self._opener = urllib.request.build_opener(_NoRedirect)

    def schema(self, number: int) -> Schema:
        problem, asked = "", 0.0
        for pause in pauses():
            if wait := max(pause, asked):
                self._sleep(wait)
            asked = 0.0
            try:
                return self._asked(number)
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    raise StreamError(f"{self.name} knows no schema {number}") from None
                problem = f"it answers {error.code}"
                if error.code < 500 and error.code != 429:
                    break
                asked = asked_pause(error.headers.get("retry-after"))
            except (OSError, HTTPException, _NoAnswer) as error:
                problem = str(error) or type(error).__name__
        raise RegistryUnavailable(
            f"the schema registry is not to be had: {problem}",
            source=self.name,
            hint="check the address, SCHEMA_REGISTRY_USER and SCHEMA_REGISTRY_PASSWORD",
        )

    def _asked(self, number: int) -> Schema:
        request = urllib.request.Request(f"{self.name}/schemas/ids/{number}")
        if user := os.environ.get("SCHEMA_REGISTRY_USER"):
            secret = f"{user}:{os.environ.get('SCHEMA_REGISTRY_PASSWORD', '')}"
            request.add_header("Authorization", "Basic " + base64.b64encode(secret.encode()).decode())
        with self._opener.open(request, timeout=_PATIENCE) as answer:
            body = answer.read()
        try:
            said = json.loads(body)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict) or not isinstance(said.get("schema"), str):
            raise _NoAnswer("its answer is no schema in JSON")
        if said.get("references"):
            raise StreamError(f"schema {number} refers to other schemas, which is not supported")
        return Schema(said.get("schemaType", "AVRO"), said["schema"])


class _NoAnswer(Exception):
    """What came is not what a registry says."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Framed:
    """Gives the content of a message as JSON.  State: the readers of the schemas that have been met."""

    def __init__(self, schemas: SchemaFolder | Registry) -> None:
        self._schemas = schemas
        self._readers: dict[int, Callable[[bytes], bytes]] = {}

    def __call__(self, data: bytes) -> bytes:
        try:
            return self._content(data)
        except RegistryUnavailable:
            raise
        except StreamError as error:
            raise StreamError(error.reason, hint=error.hint, text=data.decode("utf-8", "backslashreplace")) from None

    def _content(self, data: bytes) -> bytes:
        if len(data) < HEAD or data[0]:
            raise StreamError(
                "this message has no number of a schema", hint="leave registry= and schemas= out if none has"
            )
        number = int.from_bytes(data[1:HEAD], "big")
        if number not in self._readers:
            self._readers[number] = self._reader(number)
        return self._readers[number](data[HEAD:])

    def _reader(self, number: int) -> Callable[[bytes], bytes]:
        schema = self._schemas.schema(number)
        if schema.kind == "JSON":
            return bytes
        if schema.kind != "AVRO":
            raise StreamError(f"schema {number} is of the type {schema.kind}", hint="AVRO and JSON can be read")
        return _avro(number, schema.text)


def _avro(number: int, text: str) -> Callable[[bytes], bytes]:
    try:
        import fastavro
        from fastavro.schema import SchemaParseException, UnknownType
    except ImportError:
        raise RegistryUnavailable(
            "Avro needs the package fastavro, which is not installed", hint="pip install 'etalis-py[avro]'"
        ) from None
    try:
        parsed = fastavro.parse_schema(json.loads(text))
    except (ValueError, SchemaParseException, UnknownType) as error:
        raise StreamError(f"schema {number} is no schema of Avro: {error}") from None

    def read(content: bytes) -> bytes:
        buffer = io.BytesIO(content)
        try:
            value = fastavro.schemaless_reader(buffer, parsed, None)
        except Exception as error:  # bytes of another schema end in errors of every kind
            early = isinstance(error, EOFError)
            reason = "it ends too early" if early else str(error) or type(error).__name__
            raise StreamError(f"this is no message of schema {number}: {reason}") from None
        if buffer.tell() != len(content):
            rest = len(content) - buffer.tell()
            raise StreamError(f"this is no message of schema {number}: {rest} bytes are left over")
        return _JSON.encode(value)

    return read


def framing_of(registry: str, schemas: str) -> Framed | None:
    """What takes the framing away, for the settings of an address; None if they say nothing."""
    if registry and schemas:
        raise StreamError("schemas come from a registry or from a folder: give registry= or schemas=")
    if registry or schemas:
        return Framed(Registry(registry) if registry else SchemaFolder(schemas))
    return None


__all__ = ["Framed", "Registry", "RegistryUnavailable", "SchemaFolder", "framing_of"]
