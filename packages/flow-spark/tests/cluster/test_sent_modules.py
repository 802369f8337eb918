"""Modules that a session has sent with addArtifacts are there in every task, also of a stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flow_spark import from_dataframe, from_stream, scan_by_key

from ..infrastructure.places import Place

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]


def priced(amount: int) -> int:
    import flow_prices  # type: ignore[import-not-found] # it is where tasks run

    price: int = flow_prices.PRICE * amount
    return price


@pytest.mark.parametrize("place", ["connect"], indirect=True)
def test_a_module_that_was_sent_is_found_by_stages_keys_and_states(
    place: Place, tmp_path: Path
) -> None:
    spark = place.spark
    module, folder = tmp_path / "flow_prices.py", tmp_path / "in"
    module.write_text("PRICE = 7")
    folder.mkdir()
    (folder / "1.json").write_text("\n".join(json.dumps({"amount": n}) for n in (1, 2, 3)))
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    spark.addArtifacts(str(module), pyfile=True)
    schema = "amount long"

    rows = from_dataframe(spark.read.schema(schema).json(str(folder)))
    stream = spark.readStream.schema(schema).json(str(folder))
    flow = from_stream(stream, checkpoint=str(tmp_path / "state"), trigger="available-now")
    keyed = scan_by_key(lambda n: priced(n) % 7, lambda total, n: total + priced(n), 0)
    totals = flow.map(priced).pipe(keyed)

    assert sorted(rows.map(priced)) == [7, 14, 21]
    assert max(totals) == (0, 7 * 42)
