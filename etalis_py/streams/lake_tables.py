"""``delta:readings`` and ``iceberg:plant.readings``: tables of Delta Lake and Apache Iceberg, whole, as they are now.

================================ ===================================================================================
``delta:PATH``                   the folder of a table, also ``delta:s3://bucket/readings``; ``?version=7`` for an
                                 older state
``iceberg:NAMESPACE.TABLE``      a table of a catalog that pyiceberg knows, from ``~/.pyiceberg.yaml`` or the
                                 environment; ``?catalog=NAME`` for another one than the default
``iceberg:PATH.metadata.json``   the table that a metadata file describes, without a catalog
================================ ===================================================================================

Keys of stores come from where their tools keep them.  Needs deltalake or pyiceberg: the extras ``delta`` and
``iceberg``.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from etalis_py.events.errors import StreamError

_LONGEST = 400  # characters of a reason
_FORMATS = {"delta": ("deltalake", "version"), "iceberg": ("pyiceberg", "catalog")}


def is_lake_table(name: str) -> bool:
    """
    >>> is_lake_table("delta:readings"), is_lake_table("readings.parquet")
    (True, False)
    """
    return name.partition(":")[0] in _FORMATS


class LakeAddress(NamedTuple):
    """``format:place?settings``."""

    format: str
    place: str
    settings: dict[str, str]

    @property
    def library(self) -> str:
        """The package that reads and writes such tables."""
        return _FORMATS[self.format][0]


def lake_address(address: str) -> LakeAddress:
    """The parts of the address of a table; one that cannot be right is refused."""
    format, _, rest = address.partition(":")
    _, setting = _FORMATS[format]
    place, _, query = rest.partition("?")
    given = dict(parse_qsl(query))
    if not place or set(given) - {setting} or not given.get("version", "0").isdecimal():
        hint = f"write {format}:{'PATH' if format == 'delta' else 'NAMESPACE.TABLE'}, perhaps with ?{setting}=…"
        raise StreamError("this is not the address of a table", source=address, hint=hint)
    return LakeAddress(format, place, given)


def lake_table(address: str) -> Any:
    """The rows of a table, as an Arrow table."""
    lake = lake_address(address)
    try:
        return (_delta if lake.format == "delta" else _iceberg)(lake.place, lake.settings)
    except ImportError as error:
        if not (error.name or "").startswith(lake.library):
            raise
        reason, line = (
            f"needs the package {lake.library}, which is not installed",
            f"pip install 'etalis-py[{lake.format}]'",
        )
        raise StreamError(f"this table {reason}", source=address, hint=line) from None
    except Exception as error:  # the libraries raise those of stores, catalogs and formats
        raise StreamError(f"the table cannot be read: {reason_of(error)}", source=address) from None


def reason_of(error: Exception) -> str:
    """What a library says, in one line: the cause comes last, behind colours and arrows.

    >>> reason_of(OSError("Generic S3 error\\n  \\x1b[31m↳\\x1b[0m Connection refused"))
    'Generic S3 error: Connection refused'
    """
    lines = (re.sub(r"\x1b\[\d+m|↳", "", line).strip() for line in str(error).splitlines())
    return ": ".join(filter(None, lines))[:_LONGEST] or type(error).__name__


def _delta(place: str, given: dict[str, str]) -> Any:
    from deltalake import DeltaTable

    version = given.get("version")
    table = DeltaTable(place, version=None if version is None else int(version))
    if "://" in place:
        return table.to_pyarrow_table()
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    # The file system of deltalake calls Python from Arrow's threads, which aborts a process that ends meanwhile.
    files = SubTreeFileSystem(os.path.abspath(place), LocalFileSystem())
    return table.to_pyarrow_table(filesystem=files)


def _iceberg(place: str, given: dict[str, str]) -> Any:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.table import StaticTable

    if place.endswith(".metadata.json"):
        return StaticTable.from_metadata(place).scan().to_arrow()
    return load_catalog(given.get("catalog")).load_table(place).scan().to_arrow()
