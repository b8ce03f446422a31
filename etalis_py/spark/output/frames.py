"""Answers as the pandas frames that Spark's stateful operator takes."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa


def as_frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """The columns as they are: pandas would convert them value by value, and Spark back."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return pd.DataFrame({name: pd.Series(pd.arrays.ArrowExtensionArray(column)) for name, column in columns})


__all__ = ["as_frame"]
