"""One Spark session with Delta and Iceberg for all tests of this folder (``make test-lakes``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.lakes.artifacts import LAKES
from tests.spark.settings import shared_session


@pytest.fixture(scope="session")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Tables are Delta's if they are made ``USING delta``, and Iceberg's in the catalog ``ice``."""
    if reason := LAKES.missing():
        pytest.skip(reason)
    more = {
        "spark.jars": ",".join(map(str, LAKES.jars("lakes"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(tmp_path_factory.mktemp("iceberg")),
    }
    with shared_session(tmp_path_factory, "delta", more) as made:
        yield made
