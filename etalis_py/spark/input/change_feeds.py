"""The change feeds of tables: what a column such as ``_change_type`` of Delta and Iceberg says of a row.

What was deleted or updated withdraws the event that it had stated, in the order of the changes of the table.  In one
change what is withdrawn comes first, so that an update may leave an event as it was.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from etalis_py.spark.errors import SparkError

BEFORE = ("delete", "update_preimage", "update_before")
AFTER = ("insert", "update_postimage", "update_after")
"""The kinds of a row that was there, and of one that is there now, in small letters."""
VERSIONS = ("_commit_version", "_change_ordinal")
"""The columns with the number of a change."""
OF_FEEDS = (*VERSIONS, "_commit_timestamp", "_commit_snapshot_id")
"""The columns that a feed has beside those of the table and the kind of a change."""


def feed_of(rows: DataFrame, changes: str) -> list[str]:
    """The columns with the kind of a change and, if there is one, its number; none if there are no ``changes``."""
    if changes and changes not in rows.columns:
        raise SparkError(f"there is no column {changes!r} among {', '.join(rows.columns)}, which changes= names")
    return [changes, *(name for name in VERSIONS if name in rows.columns)] if changes else []


def unknown_kind(column: str) -> tuple[str, str]:
    """What an error says of another kind of change, before and after it."""
    return f"the column {column} holds '", f"', which is none of {', '.join(BEFORE + AFTER)}"


def withdrawals(feed: list[str]) -> dict[str, Column]:
    """The columns ``retract`` and ``arrived`` of events, by those of ``feed_of``."""
    if not feed:
        return {}
    kind = F.lower(F.col(f"`{feed[0]}`"))
    before, after = map(F.lit, unknown_kind(feed[0]))
    refused = F.raise_error(F.concat(before, F.coalesce(kind, F.lit("None")), after)).cast("boolean")
    gone = F.when(kind.isin(*BEFORE), F.lit(True)).when(kind.isin(*AFTER), F.lit(False)).otherwise(refused)
    number = F.lit(None).cast("long")
    if len(feed) > 1:
        number = 2 * F.col(f"`{feed[1]}`").cast("long") + (~gone).cast("long")
    return {"retract": gone, "arrived": number}


__all__ = ["AFTER", "BEFORE", "OF_FEEDS", "feed_of", "unknown_kind", "withdrawals"]
