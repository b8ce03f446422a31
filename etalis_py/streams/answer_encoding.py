"""The encoding of what an HTTP server answers: its bytes can only be read in one that was asked for."""

from __future__ import annotations


def unasked_encoding(encoding: str, asked: str) -> str:
    """What is wrong with ``Content-Encoding``, by the ``Accept-Encoding`` of the request; nothing if it can be read.

    >>> unasked_encoding("br", "gzip, deflate")
    'the answer is encoded as br, although only gzip, deflate were asked for'
    >>> unasked_encoding("GZip", "gzip, deflate") or unasked_encoding("identity", "gzip")
    ''
    """
    unknown = _names(encoding) - _names(asked) - {"", "identity"}
    return f"the answer is encoded as {min(unknown)}, although only {asked} were asked for" if unknown else ""


def _names(header: str) -> set[str]:
    return {one.partition(";")[0].strip().lower() for one in header.split(",")}
