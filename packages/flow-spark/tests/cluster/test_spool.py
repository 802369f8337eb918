"""Items of this process on a cluster that may not see its disk: through a shared folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import flow_core as flow
from flow_spark import on_spark

from ..infrastructure.places import Place

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

MEBIBYTE = 2**20
COUNT = 40


def many() -> flow.Flow[bytes]:
    """More than is sent at once."""
    return flow.range(COUNT).map(lambda n: bytes([n]) * MEBIBYTE)


def test_more_than_can_be_sent_goes_through_a_shared_folder(place: Place, tmp_path: Path) -> None:
    there = many().pipe(on_spark(place.spark, partitions=4, spool=tmp_path))
    firsts = list(there.map(lambda item: (item[0], len(item))))
    assert sorted(firsts) == [(n, MEBIBYTE) for n in range(COUNT)]
    assert not any(tmp_path.iterdir())
