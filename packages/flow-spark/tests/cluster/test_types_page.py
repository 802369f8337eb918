"""The page about Spark's types says what each becomes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[4] / "docs/spark_types.py"


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_table_of_types_is_what_a_run_gives() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], check=False)
    assert done.returncode == 0
