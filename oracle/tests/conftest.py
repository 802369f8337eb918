"""One virtual machine for all tests: there is one per process at most."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "jvm")]

CACHE = Path(os.environ.get("FLOW_ORACLE_CACHE", HERE.parent / ".nox" / ".cache" / "oracle"))


@pytest.fixture(scope="session")
def there():
    """RxJava's side."""
    from flow_jvm import missing_tools, prepare

    if missing := missing_tools():
        pytest.skip(f"this machine lacks: {', '.join(missing)}")
    from flow_oracle.java import start

    return start(prepare(HERE, CACHE.resolve()).classpath)
