"""One Spark session with Delta and Iceberg for all tests of this folder (``make test-lakes``)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.lakes.artifacts import LAKES
from tests.spark.core import CONFIG
from tests.spark.interpreter import interpreter


@pytest.fixture(scope="session")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Tables are Delta's if they are made ``USING delta``, and Iceberg's in the catalog ``ice``."""
    from etalis_py.spark import session

    if reason := LAKES.missing():
        pytest.skip(reason)
    config = CONFIG | {
        "spark.jars": ",".join(map(str, LAKES.jars("lakes"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("delta")),
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(tmp_path_factory.mktemp("iceberg")),
    }
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("PYSPARK_PYTHON", interpreter(tmp_path_factory.mktemp("interpreter")))
        made = session("local[2,4]", shards=2, config=config)
        warnings.simplefilter("ignore")
        yield made
        made.stop()
