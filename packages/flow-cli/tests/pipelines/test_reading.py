"""Sources that read files: what they give, where they fail, and that they let go of the file."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.sinks import write_csv
from flow_core.sources.files import MalformedInputError, read_csv, read_json_lines, read_lines
from flow_testing import TestSubscriber

Write = Callable[[str, str], Path]


def until_it_fails(flow: Flow[Any]) -> tuple[list[Any], BaseException | None]:
    """The items before the error, and the error."""
    subscriber: TestSubscriber[Any] = TestSubscriber()
    flow.subscribe(subscriber)
    return subscriber.items, subscriber.error


def test_lines_come_without_their_ends_and_empty_ones_count(write: Write) -> None:
    path = write("words.txt", "one\n\nthree")
    assert list(read_lines(path)) == ["one", "", "three"]
    assert list(read_lines(str(path)).map(len)) == [3, 0, 5]


def test_lines_may_end_as_on_any_system(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert list(read_lines(path)) == ["one", "two"]


def test_a_file_is_opened_for_each_subscriber_and_not_before(write: Write) -> None:
    path = write("late.txt", "old")
    lines = read_lines(path)
    path.write_text("new")
    assert list(lines) == ["new"]
    assert list(lines) == ["new"]


def test_a_file_that_is_not_there_fails_the_flow_and_not_its_assembly(tmp_path: Path) -> None:
    items, error = until_it_fails(read_lines(tmp_path / "nowhere.txt"))
    assert items == []
    assert isinstance(error, FileNotFoundError)


def test_a_byte_that_is_not_text_fails_at_its_line_and_loses_no_line_before(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(b"fine\nf\xc3\xbcr\nbro\xffken\nlater\n")
    items, error = until_it_fails(read_lines(path))
    assert items == ["fine", "für"]
    assert str(error) == f"{path}:3: the byte 0xff is not utf-8-sig text"


def test_another_encoding_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("für\n".encode("latin-1"))
    assert list(read_lines(path, encoding="latin-1")) == ["für"]
    path.write_bytes("für\nalle\n".encode("utf-16"))
    assert list(read_lines(path, encoding="utf-16")) == ["für", "alle"]


@pytest.mark.parametrize("leave", ["cancel", "break", "take"])
@pytest.mark.checklist("X09")
def test_the_file_is_closed_when_the_flow_is_left_early(
    write: Write, leave: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[IO[str]] = []

    def opening(*args: Any, **kwargs: Any) -> IO[str]:
        opened.append(open(*args, **kwargs))  # noqa: PTH123, SIM115 - looked at, not used
        return opened[-1]

    monkeypatch.setattr("flow_core.sources.files.open", opening, raising=False)
    rows = read_csv(write("words.txt", "a\nb\nc\n"))
    if leave == "cancel":
        subscriber: TestSubscriber[Any] = TestSubscriber(1)
        rows.subscribe(subscriber)
        assert subscriber.items == [{"a": "b"}]
        assert not opened[0].closed
        subscriber.cancel()
    elif leave == "break":
        for _ in rows:
            break
    else:
        assert list(rows.take(1)) == [{"a": "b"}]
    assert [file.closed for file in opened] == [True]


def test_items_are_read_as_they_are_requested(write: Write) -> None:
    path = write("points.jsonl", "1\n2\nno json\n")
    subscriber: TestSubscriber[Any] = TestSubscriber(2)
    read_json_lines(path).subscribe(subscriber)
    assert subscriber.items == [1, 2]
    assert subscriber.error is None
    subscriber.request(1)
    assert isinstance(subscriber.error, MalformedInputError)


# --- CSV ----------------------------------------------------------------------------------------


def test_rows_are_dicts_by_the_names_of_the_header(write: Write) -> None:
    path = write("delays.csv", 'carrier,delay\nUA,12\n\n"B,6",-3\n')
    assert list(read_csv(path)) == [
        {"carrier": "UA", "delay": "12"},
        {"carrier": "B,6", "delay": "-3"},
    ]


def test_a_column_may_have_a_type_and_then_an_empty_field_gives_none(write: Write) -> None:
    path = write("delays.csv", "carrier,delay,share,late\nUA,12,0.5,true\nB6,,,\n")
    types = {"delay": "int", "share": "float", "late": "bool"}
    classes = {"str": str, "int": int, "float": float, "bool": bool}
    by_class = {column: classes[kind] for column, kind in types.items()}
    assert (
        list(read_csv(path, types=by_class))
        == list(read_csv(path, types=types))
        == [
            {"carrier": "UA", "delay": 12, "share": 0.5, "late": True},
            {"carrier": "B6", "delay": None, "share": None, "late": None},
        ]
    )


def test_a_type_that_does_not_exist_is_refused_while_assembling() -> None:
    with pytest.raises(ValueError, match=r"'delay' is 'integer'; there are str, int, float, bool"):
        read_csv("x.csv", types={"delay": "integer"})


@pytest.mark.parametrize(
    ("text", "line", "says", "before"),
    [
        ("a,b\n1,2\n3\n", 3, "1 fields where the header has 2", 1),
        ('a,b\n"1\n1",2\n3,4,5\n', 4, "3 fields where the header has 2", 1),
        ('a,b\n1,2\n"open', 3, "no CSV: unexpected end of data", 1),
        ("", 1, "there is no header", 0),
        ("a,a\n", 1, "the header has 'a' more than once", 0),
    ],
)
def test_a_malformed_row_fails_at_its_line_and_loses_none_before(
    write: Write, text: str, line: int, says: str, before: int
) -> None:
    path = write("bad.csv", text)
    items, error = until_it_fails(read_csv(path))
    assert len(items) == before
    assert isinstance(error, MalformedInputError)
    assert (error.path, error.line) == (path, line)
    assert str(error).startswith(f"{path}:{line}: {says}")


def test_a_field_of_another_type_is_named_with_its_column(write: Write) -> None:
    path = write("delays.csv", "carrier,delay\nUA,12\nB6,NA\n")
    items, error = until_it_fails(read_csv(path, types={"delay": "int"}))
    assert items == [{"carrier": "UA", "delay": 12}]
    assert str(error) == f"{path}:3: delay is 'NA', not int"


def test_a_typed_column_that_is_not_there_is_named(write: Write) -> None:
    path = write("delays.csv", "carrier,delay\n")
    _, error = until_it_fails(read_csv(path, types={"dely": "int"}))
    assert str(error) == f"{path}:1: there is no column 'dely'; there are carrier, delay"


# --- JSON lines ---------------------------------------------------------------------------------


def test_each_line_is_a_value_and_blank_ones_are_none(write: Write) -> None:
    path = write("points.jsonl", '{"x": 1}\n\n[2]\n  \n"three"\n')
    assert list(read_json_lines(path)) == [{"x": 1}, [2], "three"]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{x}", "no JSON: Expecting property name"),
        ("null", "null is not an item"),
        ("9" * 5000, "no JSON: Exceeds the limit (4300 digits)"),
    ],
)
def test_a_malformed_line_fails_with_its_number_and_loses_none_before(
    write: Write, bad: str, says: str
) -> None:
    path = write("points.jsonl", f"1\n\n{bad}\n4\n")
    items, error = until_it_fails(read_json_lines(path))
    assert items == [1]
    assert str(error).startswith(f"{path}:3: {says}")


def test_a_field_may_be_longer_than_the_csv_module_takes_by_itself(tmp_path: Path) -> None:
    limit = csv.field_size_limit(1000)
    try:
        path = tmp_path / "long.csv"
        rows = [{"id": str(n), "text": "x" * 200_000} for n in range(3)]
        flow.from_iterable(rows).pipe(write_csv(path))
        assert list(read_csv(path)) == rows
        before, error = until_it_fails(read_csv(path, field_limit=150_000))
        assert before == []
        assert isinstance(error, MalformedInputError)
        assert error.line == 2
        assert "more than 150000 characters" in str(error)
        assert "field_limit" in str(error)
    finally:
        csv.field_size_limit(limit)


def test_a_quote_that_is_not_closed_does_not_read_a_whole_file_into_one_field(
    tmp_path: Path,
) -> None:
    path = tmp_path / "open.csv"
    path.write_text('a,b\n1,2\n3,"4\n' + "5,6\n" * 100_000)
    before, error = until_it_fails(read_csv(path, field_limit=100_000))
    assert before == [{"a": "1", "b": "2"}]
    assert isinstance(error, MalformedInputError)
    assert error.line == 3


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.csv"])
def test_a_file_in_gzip_format_is_read_under_any_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress("é,b\n1,2\n".encode()) + gzip.compress(b"3,4\n"))
    assert list(read_csv(path)) == [{"é": "1", "b": "2"}, {"é": "3", "b": "4"}]
    assert list(read_lines(path)) == ["é,b", "1,2", "3,4"]
    path.write_bytes(gzip.compress(b'{"a": 1}\n[2]\n'))
    assert list(read_json_lines(path)) == [{"a": 1}, [2]]


def test_gzip_that_ends_too_early_fails_after_the_lines_before(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    packed = gzip.compress("\n".join(map(str, range(50_000))).encode())
    path.write_bytes(packed[: len(packed) // 2])
    before, error = until_it_fails(read_lines(path))
    assert before[:3] == ["0", "1", "2"]
    assert isinstance(error, MalformedInputError)
    assert "broken gzip" in str(error)


def test_files_that_are_too_short_to_be_packed_are_read(tmp_path: Path) -> None:
    for content in (b"", b"\x1f", b"a"):
        path = tmp_path / "short.txt"
        path.write_bytes(content)
        assert list(read_lines(path)) == ([content.decode()] if content else [])
