"""Sinks: a file is complete or as it was before."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, Operator
from flow_core.sinks import print_items, write_csv, write_json_lines, write_lines
from flow_core.sources.files import read_csv, read_json_lines, read_lines

BOOM = ValueError("boom")
ROWS: list[dict[str, object]] = [{"a": 1, "b": "x,y"}, {"a": 2, "b": None}]


def failing(items: Flow[Any], after: int) -> Flow[Any]:
    """The first items, and then an error."""
    count = iter(range(after))

    def fail(item: Any) -> Any:
        if next(count, None) is None:
            raise BOOM
        return item

    return items.map(fail)


def test_items_are_printed_one_a_line_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert flow.just(1, "two").pipe(print_items()) == 2
    assert capsys.readouterr().out == "1\ntwo\n"


def test_written_items_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert flow.just("a", "für").pipe(write_lines(path)) == 2
    assert list(read_lines(path)) == ["a", "für"]
    assert flow.from_iterable(ROWS).pipe(write_json_lines(path)) == 2
    assert list(read_json_lines(path)) == ROWS
    assert flow.from_iterable(ROWS).pipe(write_csv(path)) == 2
    assert list(read_csv(path)) == [{"a": "1", "b": "x,y"}, {"a": "2", "b": ""}]
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\r"])
def test_fields_of_several_lines_are_read_as_they_were_written(
    tmp_path: Path, end: str, delimiter: str
) -> None:
    path = tmp_path / "out.csv"
    texts = [f"a{end}b", end, f"{end}a", f"a{end}", f'"{end}"{delimiter}', '"', "", "plain"]
    rows: list[dict[str, object]] = [{f"x{end}": text, "y": delimiter} for text in texts]
    assert flow.from_iterable(rows).pipe(write_csv(path, delimiter=delimiter)) == len(rows)
    assert list(read_csv(path, delimiter=delimiter)) == rows


def test_each_row_of_csv_ends_as_a_line_does_on_unix(tmp_path: Path) -> None:
    flow.just({"a": 1, "b": "x\r\n"}, {"a": "", "b": None}).pipe(write_csv(tmp_path / "out.csv"))
    assert (tmp_path / "out.csv").read_bytes() == b'a,b\n1,"x\r\n"\n,\n'


def test_dataclasses_are_objects_in_json(tmp_path: Path) -> None:
    @dataclasses.dataclass
    class Point:
        x: int

    flow.just(Point(1)).pipe(write_json_lines(tmp_path / "points.jsonl"))
    assert json.loads((tmp_path / "points.jsonl").read_text()) == {"x": 1}


@pytest.mark.parametrize("sink", [write_lines, write_json_lines, write_csv])
@pytest.mark.parametrize("existed", [True, False])
def test_a_flow_that_fails_leaves_what_was_there_before(
    tmp_path: Path, sink: Callable[[Path], Operator[Any, int]], existed: bool
) -> None:
    path = tmp_path / "out"
    if existed:
        path.write_text("before")
    with pytest.raises(ValueError, match="boom") as caught:
        failing(flow.from_iterable(ROWS), 1).pipe(sink(path))
    assert caught.value is BOOM
    assert [each.read_text() for each in tmp_path.iterdir()] == (["before"] if existed else [])


@pytest.mark.parametrize(
    ("sink", "items", "error"),
    [
        (write_lines, ["ok", "two\nlines"], ValueError),
        (write_json_lines, [1, object()], TypeError),
        (write_json_lines, [1, float("nan")], ValueError),
        (write_csv, [{"a": 1}, {"b": 1}], ValueError),
        (write_csv, [{"a": 1}, {"a": 1, "b": 1}], ValueError),
        (write_csv, [{"a": 1}, [1]], TypeError),
    ],
)
def test_an_item_that_cannot_be_written_leaves_no_file_and_cancels(
    tmp_path: Path, sink: Callable[[Path], Operator[Any, int]], items: list[Any], error: type
) -> None:
    closed = threading.Event()

    def source() -> Any:
        try:
            yield from items
            pytest.fail("it was read to its end")
        finally:
            closed.set()

    with pytest.raises(error):
        flow.from_iterable(source()).pipe(sink(tmp_path / "out"))
    assert closed.is_set()
    assert list(tmp_path.iterdir()) == []


def test_the_error_for_a_csv_item_with_other_keys_names_columns_of_any_type(
    tmp_path: Path,
) -> None:
    rows: list[Any] = [{1: "a", None: "b"}, {1: "a"}]
    with pytest.raises(ValueError, match="has the keys 1 where the columns are 1, None"):
        flow.from_iterable(rows).pipe(write_csv(tmp_path / "out"))


@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_leaves_no_file_either(tmp_path: Path, fatal: type[BaseException]) -> None:
    def stop(item: Any) -> Any:
        raise fatal

    with pytest.raises(fatal):
        flow.range(3).map(stop).pipe(write_lines(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_not_there_before_the_flow_completes(tmp_path: Path) -> None:
    path = tmp_path / "out"
    flow.range(2).do_on_next(lambda _: pytest.fail("early") if path.exists() else None).pipe(
        write_lines(path)
    )
    assert path.read_text() == "0\n1\n"


def test_a_folder_that_is_not_there_is_an_error_before_the_flow_runs(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        flow.range(1).do_on_next(lambda _: pytest.fail("it ran")).pipe(
            write_lines(tmp_path / "no" / "out")
        )
    with pytest.raises(IsADirectoryError):
        flow.range(1).do_on_next(lambda _: pytest.fail("it ran")).pipe(write_lines(tmp_path))


def test_the_rights_of_a_replaced_file_are_kept_and_a_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_text("before")
    path.chmod(0o640)
    link.symlink_to(path)
    flow.just("after").pipe(write_lines(link))
    assert link.is_symlink()
    assert path.read_text() == "after\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()), daemon=True)
    reader.start()
    flow.range(2).pipe(write_lines(path))
    reader.join(30)
    assert read == ["0\n1\n"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_columns_may_be_named_and_then_stand_even_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    flow.empty().pipe(write_csv(path, columns=["a", "b"], delimiter=";"))
    assert path.read_text() == "a;b\n"
    flow.just({"b": 2, "a": 1}).pipe(write_csv(path, columns=["a", "b"]))
    assert path.read_text() == "a,b\n1,2\n"


@pytest.mark.parametrize(
    "item", [{1: "a", "1": "b"}, {True: 1, "true": 2}, [{"x": {None: 1, "null": 2}}]]
)
def test_keys_that_become_the_same_text_are_refused(item: object, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with pytest.raises(ValueError, match=r"two keys of .* become .*, and only one"):
        flow.just(item).pipe(write_json_lines(path))
    assert not path.exists()
    flow.just({1: "a", "2": "b"}).pipe(write_json_lines(path))
    assert path.read_text() == '{"1": "a", "2": "b"}\n'
