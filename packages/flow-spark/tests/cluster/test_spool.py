"""Items of this process on a cluster that may not see its disk: through a shared folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import flow_core as flow
from flow_spark import SpoolError, on_spark

from ..infrastructure.places import Place

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

MEBIBYTE = 2**20
COUNT = 40


def many() -> flow.Flow[bytes]:
    """More than is sent at once."""
    return flow.range(COUNT).map(lambda n: bytes([n]) * MEBIBYTE)


@pytest.mark.parametrize("place", ["connect", "local"], indirect=True)
def test_on_this_machine_more_than_can_be_sent_needs_no_place(place: Place) -> None:
    there = many().pipe(on_spark(place.spark))
    assert sorted(there.map(lambda item: (item[0], len(item)))) == [
        (n, MEBIBYTE) for n in range(COUNT)
    ]


@pytest.mark.parametrize("place", ["connect-standalone"], indirect=True)
def test_elsewhere_more_than_can_be_sent_asks_for_a_place(place: Place) -> None:
    with pytest.raises(SpoolError, match=r"more than 32 MiB.*Name one"):
        list(many().pipe(on_spark(place.spark)).map(len))


@pytest.mark.parametrize("place", ["connect"], indirect=True)
def test_a_server_that_does_not_see_the_files_of_this_process_is_asked_first(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a container whose port shows on this machine: it has another file system.
    monkeypatch.setattr(Path, "as_uri", lambda path: f"file:///elsewhere{path}")

    with pytest.raises(SpoolError, match=r"more than 32 MiB.*Name one"):
        list(many().pipe(on_spark(place.spark)).map(len))


def test_more_than_can_be_sent_goes_through_a_shared_folder(place: Place, tmp_path: Path) -> None:
    there = many().pipe(on_spark(place.spark, partitions=4, spool=tmp_path))
    firsts = list(there.map(lambda item: (item[0], len(item))))
    assert sorted(firsts) == [(n, MEBIBYTE) for n in range(COUNT)]
    assert not any(tmp_path.iterdir())
