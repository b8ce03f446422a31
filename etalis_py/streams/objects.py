"""``s3://bucket/key``, ``gs://…``, ``hdfs://…``: files in object stores and in Hadoop, opened by Arrow.

Keys and regions come from where the tools of the store keep them: environment, profile, machine.  What belongs to the
address stands after ``?``: ``s3://bucket/ticks.jsonl?region=eu-central-1``, and for a store of one's own
``endpoint_override=localhost:9000&scheme=http``.

>>> is_object("s3://bucket/ticks.jsonl.gz?region=eu-central-1"), is_object("ticks.jsonl")
(True, False)
>>> name_of("s3://bucket/ticks.jsonl.gz?region=eu-central-1")
's3://bucket/ticks.jsonl.gz'
"""

from __future__ import annotations

from typing import Any

from etalis_py.events.errors import StreamError, check_no_password

SCHEMES = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")


def is_object(source: str) -> bool:
    return source.partition("://")[0] in SCHEMES and "://" in source


def name_of(source: str) -> str:
    """The address without its settings."""
    return source.partition("?")[0] if is_object(source) else source


def open_object(source: str) -> Any:
    """The bytes of an object, from its beginning."""
    from pyarrow import fs

    check_no_password(source)
    name = name_of(source)
    try:
        system, path = fs.FileSystem.from_uri(source)
        return system.open_input_stream(path, compression=None)
    except FileNotFoundError:
        raise StreamError("there is no such object", source=name, hint="check the bucket and the key") from None
    except (OSError, ValueError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        hint = "check the address, and the keys of the store in the environment"
        raise StreamError(f"cannot be opened: {reason}", source=name, hint=hint) from None
