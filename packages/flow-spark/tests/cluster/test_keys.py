"""Keys of a stream's states in a program that is started again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..infrastructure.drop import Drop
from ..infrastructure.sessions import Sessions

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(400)]

TIMEOUT_S = 180.0

RUN = """
import sys
from dataclasses import dataclass
from flow_spark import from_stream, scan_by_key, session

@dataclass(frozen=True)
class City:
    number: int

folder, states = sys.argv[1:]
with session("local[2]", conf={"spark.sql.shuffle.partitions": 1}, fast_start=True) as spark:
    def totals(key, checkpoint):
        stream = spark.readStream.schema("n long").json(folder)
        rows = from_stream(stream, checkpoint=f"{states}/{checkpoint}", trigger="available-now")
        return rows.pipe(scan_by_key(key, lambda total, n: total + n, 0))

    print(sorted(totals(lambda n: ("city", n % 2), "plain")))
    try:
        print(list(totals(lambda n: ("city", City(n % 2)), "refused")))
    except Exception as error:
        print(error)
"""


def test_keys_continue_in_another_process_and_those_that_cannot_are_refused(
    sessions: Sessions, drop: Drop, tmp_path: Path
) -> None:
    sessions.close()  # the cores are for the processes that are started here
    said: list[list[str]] = []
    for numbers in ([1, 2], [11, 12]):
        drop.put(numbers)
        ran = subprocess.run(
            [sys.executable, "-c", RUN, str(drop.folder), str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        said.append(ran.stdout.splitlines())

    assert said[0][0] == "[(('city', 0), 2), (('city', 1), 1)]"
    assert said[1][0] == "[(('city', 0), 14), (('city', 1), 12)]"
    for lines in said:
        (refused,) = [line for line in lines if "cannot keep a state" in line]
        assert "the key ('city', City(number=" in refused
        assert "its class __main__.City" in refused
        assert "a module that is installed" in refused
        assert "a tuple of plain values" in refused
