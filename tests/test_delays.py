"""The pipeline of the examples, as a stranger runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flow_cli import pipelines
from flow_testing import TIMEOUT_S

EXAMPLE = Path(__file__).parent.parent / "examples" / "delays.toml"
LATE = [(20, "UA"), (33, "AA"), (19, "B6"), (851, "MQ"), (1272, "HA"), (16, "B6")]


def command(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "flow_cli", *args],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=12 * TIMEOUT_S,
    )


def flights(text: str) -> list[tuple[int, str]]:
    return [(row["delay"], row["carrier"]) for row in map(json.loads, text.splitlines())]


def test_it_runs_from_anywhere_and_prints_the_late_flights(tmp_path: Path) -> None:
    done = command(tmp_path, "run", str(EXAMPLE))
    assert (done.returncode, done.stderr) == (0, "")
    assert flights(done.stdout) == LATE


def test_its_parameters_can_be_set_and_the_file_is_written_at_the_end(tmp_path: Path) -> None:
    done = command(tmp_path, "run", str(EXAMPLE), "--", "--minutes", "60", "--out", "late.jsonl")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert flights((tmp_path / "late.jsonl").read_text("utf-8")) == [(851, "MQ"), (1272, "HA")]
    assert [path.name for path in tmp_path.iterdir()] == ["late.jsonl"]


def test_a_file_with_a_bad_row_leaves_no_output_and_names_the_line(tmp_path: Path) -> None:
    data = tmp_path / "bad.csv"
    data.write_text("carrier,flight,delay\nUA,1,20\nB6,2,soon\n")
    out = tmp_path / "late.jsonl"
    done = command(tmp_path, "run", str(EXAMPLE), "--", f"--data={data}", f"--out={out}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "bad.csv:3: delay is 'soon', not int" in done.stderr
    assert not out.exists()


def test_it_can_be_explained(tmp_path: Path) -> None:
    drawn = command(tmp_path, "explain", str(EXAMPLE), "--", "--minutes", "60")
    assert drawn.returncode == 0
    assert "filter(item 'delay' at_least 60)" in drawn.stdout
    assert "sink write_json_lines(" in drawn.stdout


@pytest.mark.parametrize("minutes", [0, 15, 10_000])
def test_a_program_can_load_it(minutes: int) -> None:
    pipeline = pipelines.load(EXAMPLE, {"minutes": minutes})
    late = [row["delay"] for row in pipeline.flow() if isinstance(row, dict)]
    assert all(delay >= minutes for delay in late)
    assert len(late) == {0: 9, 15: 6, 10_000: 0}[minutes]
