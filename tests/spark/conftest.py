"""A small Spark on this machine, one for the whole run; without pyspark these tests are skipped, saying so."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from system_words import guard

NONE = "no Spark is installed here"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A SparkSession on two cores. Its Python workers find the packages and tests of this tree."""
    try:
        import pyspark.sql
    except ImportError:
        pytest.skip(NONE)
    root = Path(__file__).parents[2]
    paths = [str(root / "src"), str(root / "tests"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        pyspark.sql.SparkSession.builder.master("local[2]")
        .appName("dphmm tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # Tables here are small: few tasks, and no second compilation of Java that is soon done.
        .config("spark.default.parallelism", "1")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.execution.pyspark.udf.hideTraceback.enabled", "true")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.local.dir", str(tmp_path_factory.mktemp("spill")))
    )
    # Workers keep the environment in which Java was started. Of a session's fixture pytest does not ask the hooks of a
    # folder, so this would be that of the test which comes first.
    with guard.drawing(guard.REPLAYED, "workers of Spark"):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
