"""A container's feed in pieces that can be read again, for readers that store their position elsewhere.

``client.Follower`` follows a container as it grows; here the members between two numbers can be read any number of
times.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from urllib.parse import urljoin

import httpx

from etalis_py.events import Event

from . import vocabulary as v
from .client import deleted_up_to, members_of, refusal
from .graphs import NDJSON, TURTLE
from .negotiation import links
from .origin import ContainerError, bound_client, checked_address, token_for

_PAGE = 1_000


def newest(url: str) -> int:
    """The number of the newest member; 0 if there is none."""
    with _client(url) as client:
        _feed(client, url)
        members = members_of(_get(client, f"{checked_address(url)}?newest=1", NDJSON).text)
        return max((number for number, _ in members), default=0)


def check_position(url: str, used: int) -> None:
    """Refuse a container that nobody could read again, or that is not the one of which so many members were used."""
    there = newest(url)
    if 0 < there < used:
        raise ContainerError(
            f"{url} has members up to number {there}, and the run has used them up to number {used}: it is another "
            "container, or an older state of it; restore it, or begin anew with an empty checkpoint folder"
        )


def missed(url: str) -> str:
    """The warning that a reader comes too late for some members."""
    return (
        f"{url}: graphs were deleted before they were read, as the container keeps no more: read sooner, or raise its "
        "retainCount, or its retainFor, which counts from their times"
    )


def between(url: str, after: int, upto: int) -> Iterator[Event]:
    """The members with numbers above ``after``, up to ``upto``, in order of arrival."""
    with _client(url) as client:
        feed = _feed(client, url)
        while after < upto:
            page = _get(client, urljoin(feed, f"?after={after}&limit={_PAGE}"), NDJSON)
            members = members_of(page.text)
            if after and deleted_up_to(page):
                warnings.warn(missed(url), stacklevel=2)
            for number, event in members:
                if number <= upto:
                    yield event
            if not members:
                return
            after = members[-1][0]


def _client(url: str) -> httpx.Client:
    return bound_client(url, token_for(url), 30.0, redirected=True)


def _feed(client: httpx.Client, url: str) -> str:
    response = _get(
        client, checked_address(url), TURTLE, {"Prefer": f'return=representation; include="{v.PREFER_MINIMAL}"'}
    )
    for relation, target in links(response.headers.get_list("link")):
        if relation == v.REL_FEED:
            return urljoin(url, target)
    raise ContainerError(
        f"{url} has no feed of numbered members, so nobody could read it again after a failure; follow it with "
        "etalis run and the local engine"
    )


def _get(client: httpx.Client, url: str, accept: str, more: dict[str, str] | None = None) -> httpx.Response:
    try:
        response = client.get(url, headers={"Accept": accept, **(more or {})})
    except httpx.TransportError as error:
        raise ContainerError(f"{url} is out of reach ({error}); start the server or check the address") from None
    if response.status_code != 200:
        raise refusal(url, response)
    return response
