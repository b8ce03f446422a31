"""``delta:PATH`` and ``iceberg:NAMESPACE.TABLE``: a row for each match in a table of a lake, exactly once.

The columns are those of ``match_rows``, all of them texts, with bindings and triples as JSON.  The rows of a portion
and its number are one commit of the table: in Delta Lake the number is the version of an application transaction, in
Iceberg a property of the table, both by the name ``etalis:RUN``.  A match that is taken back is removed.  The table is
made if it is not there.  Addresses are those of ``streams.lake_tables``.

Iceberg lists the older states of a table in each new one, so that a commit takes the longer the more there are: a table
that is made here keeps ``OLDER_STATES`` of them, as one of its properties says.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter, warn

from etalis_py.connectors.match_rows import MatchRow, net
from etalis_py.connectors.registry import Request, missing
from etalis_py.connectors.tokens import Numbered
from etalis_py.events.errors import SinkError, StreamError
from etalis_py.streams.lake_tables import LakeAddress, lake_address, reason_of

if TYPE_CHECKING:
    import pyarrow as pa


OLDER_STATES = "etalis.older-states"
"""The property of a table of Iceberg that says how many older states this sink leaves there."""
_KEPT, _MANY = 100, 1_000
# Else each commit leaves a description of all states on the disk, and lists all commits before it.
_PROPERTIES = {
    OLDER_STATES: str(_KEPT),
    "write.metadata.delete-after-commit.enabled": "true",
    "commit.manifest-merge.enabled": "true",
}


class Lake(Numbered):
    """A table of a lake; what its library raises is told with the address."""

    def __init__(self, address: str, lake: LakeAddress) -> None:
        super().__init__(address)
        self._lake = lake

    @property
    def key(self) -> str:
        """By which name the table has the number of this run."""
        return f"etalis:{self.run}"

    def at(self) -> int:
        try:
            return self._at()
        except Exception as error:  # the libraries raise those of stores, catalogs and formats
            raise self._failure(error) from None

    def put(self, records: list[dict[str, Any]], number: int) -> None:
        self.check_free(self.at(), number)
        gone, rows = net(records)
        try:
            self._put(gone, table_of(rows), number)
        except Exception as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> SinkError:
        if isinstance(error, ImportError):
            missing(self._lake.library, self._lake.format, self.name, sink=True)
        return SinkError(f"the table cannot be written: {reason_of(error)}", target=self.name,
                         hint="check the address, and the keys of the store in the environment")  # fmt: skip

    @abstractmethod
    def _at(self) -> int: ...

    @abstractmethod
    def _put(self, gone: list[str], rows: pa.Table, number: int) -> None:
        """Take away the rows with these ids, add those, and keep the number: in one commit."""

    def close(self) -> None:
        """Do nothing: each commit is a connection of its own."""


class Delta(Lake):
    def _at(self) -> int:
        from deltalake import DeltaTable

        place = self._lake.place
        return DeltaTable(place).transaction_version(self.key) or 0 if DeltaTable.is_deltatable(place) else 0

    def _put(self, gone: list[str], rows: pa.Table, number: int) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

        place = self._lake.place
        commit = CommitProperties(app_transactions=[Transaction(self.key, number)])
        if gone and DeltaTable.is_deltatable(place):
            self._merge(DeltaTable(place), gone, rows, commit)
            if self._at() == number:
                return
            rows = rows.slice(0, 0)  # nothing had to change, so there was no commit: one without rows has the number
        write_deltalake(place, rows, mode="append", commit_properties=commit)

    def _merge(self, table: Any, gone: list[str], rows: pa.Table, commit: Any) -> None:
        """In a merge a row of the table meets one row at most: a match that came back stays if it is there."""
        import pyarrow as pa

        back = set(rows["id"].to_pylist())
        left = [id for id in gone if id not in back]
        removed = pa.table({"id": pa.array(left, pa.string()), "removed": pa.repeat(True, len(left))})
        added = rows.append_column("removed", pa.repeat(False, len(rows)))
        source = pa.concat_tables([added, removed], promote_options="default")
        merge = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t", commit_properties=commit)
        inserted = {name: f"s.{name}" for name in rows.column_names}
        merge.when_matched_delete("s.removed").when_not_matched_insert(inserted, "NOT s.removed").execute()


class Iceberg(Lake):
    _told = False

    def _catalog(self) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog(self._lake.settings.get("catalog"))

    def _at(self) -> int:
        catalog = self._catalog()
        if not catalog.table_exists(self._lake.place):
            return 0
        return int(catalog.load_table(self._lake.place).properties.get(self.key, 0))

    def _put(self, gone: list[str], rows: pa.Table, number: int) -> None:
        from pyiceberg.expressions import In

        table = self._opened(rows.schema)
        with table.transaction() as transaction:
            if gone and table.current_snapshot() is not None:
                with catch_warnings():  # it warns where none of them is there
                    simplefilter("ignore", UserWarning)
                    transaction.delete(In("id", gone))  # type: ignore[call-arg, arg-type]  # made by Pydantic
            if len(rows):
                transaction.append(rows)
            transaction.set_properties({self.key: str(number)})
        self._forget_older_states(table)

    def _opened(self, schema: pa.Schema) -> Any:
        """The table, which is made if it is not there."""
        catalog, place = self._catalog(), self._lake.place
        if not catalog.table_exists(place):
            catalog.create_namespace_if_not_exists(place.rpartition(".")[0])
        return catalog.create_table_if_not_exists(place, schema=schema, properties=_PROPERTIES)

    def _forget_older_states(self, table: Any) -> None:
        """Leave as many states as the table says; half as many again may gather, so that few commits do this."""
        *older, _ = sorted(table.snapshots(), key=lambda state: state.sequence_number) or [None]
        if not (kept := table.properties.get(OLDER_STATES, "")).isdecimal():
            if len(older) >= _MANY and not self._told:
                self._told = True
                warn(
                    f"{self.name} has {len(older):,} older states, and each makes every commit slower: expire them, "
                    f"or set {OLDER_STATES}={_KEPT} as a property of the table; seldom checkpoints make fewer",
                    stacklevel=2,
                )
        elif len(older) > 1.5 * int(kept) + 1:
            pinned = {reference.snapshot_id for reference in table.refs().values()}
            gone = [state.snapshot_id for state in older[: len(older) - int(kept)] if state.snapshot_id not in pinned]
            table.maintenance.expire_snapshots().by_ids(gone).commit()


def table_of(rows: list[MatchRow]) -> pa.Table:
    """The rows as Arrow has them."""
    import pyarrow as pa

    texts = [
        row._replace(
            bindings=_json(row.bindings),  # type: ignore[arg-type]
            triples=None if row.triples is None else _json(row.triples),
        )
        for row in rows
    ]
    columns = zip(*texts, strict=True) if texts else [()] * len(MatchRow._fields)
    schema = pa.schema([(name, pa.string()) for name in MatchRow._fields])
    return pa.table([pa.array(column, pa.string()) for column in columns], schema=schema)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def open_sink(address: str, request: Request) -> Lake:
    try:
        lake = lake_address(address)
    except StreamError as error:
        raise SinkError(error.reason, target=address, hint=error.hint) from None
    if "version" in lake.settings or lake.place.endswith(".metadata.json"):
        raise SinkError("an older state of a table cannot be written", target=address, hint="name the table alone")
    return (Delta if lake.format == "delta" else Iceberg)(address, lake)
