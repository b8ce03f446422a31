"""``webhook+https://host/path``: each match is posted as a JSON object, at least once, with retries.

The header ``Idempotency-Key`` has the id of the match, so that a receiver can drop what it has; with a secret in the
environment variable ``ETALIS_WEBHOOK_SECRET``, ``X-Etalis-Signature`` has ``sha256=`` and the HMAC of the body.  An
answer of 5xx or 429, or none, is tried again after 0.5, 1, 2, … seconds, at most five times, and not before the time in
its ``Retry-After``, which counts up to a minute; 4xx is an error at once.  Redirects are not followed: the matches go
where the address says.

After ``?``, ``as=cloudevents`` wraps each match in a CloudEvent.  The rest of the query belongs to the address.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from etalis_py.connectors.posting import Posting
from etalis_py.connectors.registry import Request, taken_from
from etalis_py.events.errors import SinkError, without_password
from etalis_py.streams.retries import TRIES, asked_pause, pauses

_SECRET = "ETALIS_WEBHOOK_SECRET"
_PATIENCE = 10.0  # seconds for an answer
_LONGEST, _LISTENS = 65_536, 1.0  # bytes and seconds of an answer; if there is more, the connection is closed


class Webhook(Posting):
    """One connection; the matches are posted one after another."""

    longest = _PATIENCE * TRIES + sum(pauses())

    def __init__(self, address: str, *, cloudevents: bool, sleep: Callable[[float], None] = time.sleep) -> None:
        import httpx

        super().__init__()
        try:
            httpx.URL(address)
        except httpx.InvalidURL as error:
            raise ValueError(error) from None
        self._httpx, self._address, self._cloudevents, self._sleep = httpx, address, cloudevents, sleep
        self.name = without_password(address).partition("?")[0]
        self._client = httpx.Client(timeout=_PATIENCE, follow_redirects=False)
        self._secret = os.environ.get(_SECRET, "").encode()

    def post(self, records: Sequence[dict[str, Any]]) -> None:
        for record in records:
            self._post(record)
            self.left -= 1

    def _post(self, record: dict[str, Any]) -> None:
        body = msgspec.json.encode(_cloud_event(record) if self._cloudevents else record)
        kind = "application/cloudevents+json" if self._cloudevents else "application/json"
        headers = {"content-type": kind, "idempotency-key": record["id"] + "-" * bool(record.get("retracted"))}
        if self._secret:
            headers["x-etalis-signature"] = "sha256=" + hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        asked, self.longest = 0.0, Webhook.longest
        for pause in pauses():
            if wait := max(pause, asked):
                self._sleep(wait)
            asked = 0.0
            try:
                with self._client.stream("POST", self._address, content=body, headers=headers) as answer:
                    self._finish(answer)
            except self._httpx.HTTPError as error:
                self.problem = str(error) or type(error).__name__
                continue
            if answer.is_success:
                self.problem = ""
                return
            self.problem = f"the answer was {answer.status_code} {answer.reason_phrase}"
            if answer.status_code < 500 and answer.status_code not in (408, 425, 429):
                break
            asked = asked_pause(answer.headers.get("retry-after"))
            self.longest += asked
        raise SinkError(
            f"a match could not be posted: {self.problem}",
            target=self.name,
            hint="check the receiver; with --checkpoint the run goes on with this match",
        )

    def _finish(self, answer: Any) -> None:
        """Read a short answer to its end, so that the connection serves the next match; nobody needs what it says."""
        size, end = 0, time.monotonic() + _LISTENS
        with suppress(self._httpx.HTTPError):  # its first line has said whether the match has arrived
            for piece in answer.iter_raw():
                size += len(piece)
                if size > _LONGEST or time.monotonic() > end:
                    return

    def close(self) -> None:
        self._client.close()


def _cloud_event(record: dict[str, Any]) -> dict[str, Any]:
    kind = "retracted" if record.get("retracted") else "match"
    return {"specversion": "1.0", "type": f"etalis.{kind}", "source": f"/{record['query']}", "id": record["id"],
            "datacontenttype": "application/json", "data": record}  # fmt: skip


def open_sink(address: str, request: Request) -> Webhook:
    split = urlsplit(address)
    kind, query = taken_from(split.query, "as")
    if kind not in (None, "json", "cloudevents") or not split.hostname:
        raise SinkError("this is not the address of a webhook", target=address,
                        hint="write webhook+https://host/path, perhaps with ?as=cloudevents")  # fmt: skip
    scheme = split.scheme.partition("+")[2] or "https"
    return Webhook(urlunsplit(split._replace(scheme=scheme, query=query)), cloudevents=kind == "cloudevents")
