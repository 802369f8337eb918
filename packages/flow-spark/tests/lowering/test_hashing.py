"""Hashes of keys: the same for equal keys, and in every process."""

from __future__ import annotations

import datetime
import enum
import os
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from flow_spark.items.hashing import partition_values, stable_hash


@dataclass(frozen=True)
class Place:
    city: str
    zip_code: int


class Pair(NamedTuple):
    left: str
    right: int


class Color(enum.Enum):
    RED = "r"
    GREEN = "g"


class Level(enum.IntEnum):
    LOW = 1


class Word(str):
    """Equal to its text."""

    __slots__ = ()


class Odd:
    """Nothing is known of it."""


NOON = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)

KEYS: list[Any] = [
    *("", "spam", "späm", "\ud800", b"", b"spam", None, True, 0, -1, 2**70, 1.5, Decimal("1.10")),
    *((), ("a", 1), ("a", ("b", None)), frozenset({"a", "b"}), Place("Bern", 3000), Pair("a", 1)),
    *(Color.RED, Level.LOW, NOON, NOON.replace(tzinfo=None), NOON.date()),
    *(datetime.timedelta(hours=1), float("inf")),
]


def named(key: object) -> str:
    """A name that is the same in each process, where a set has another order."""
    return repr(sorted(key)) if isinstance(key, frozenset) else repr(key)


@pytest.mark.parametrize("key", KEYS, ids=named)
def test_it_fits_into_an_int_of_spark(key: object) -> None:
    assert 0 <= stable_hash(key) < 2**31


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, True),
        (1, Decimal(1)),
        (1, Fraction(1)),
        (0.5, Fraction(1, 2)),
        (0.0, -0.0),
        (1, Level.LOW),
        ("a", Word("a")),
        (("a", 1), Pair("a", 1)),
        (("a", 1), ("a", 1.0)),
        (frozenset({"a", "b", "c"}), frozenset({"c", "b", "a"})),
        (Place("Bern", 3000), Place("Bern", 3000)),
        (NOON, NOON.astimezone(ZoneInfo("Asia/Tokyo"))),
        (7, numpy.int64(7)),
        (7, numpy.float32(7)),
        (1.5, numpy.float64(1.5)),
        (True, numpy.bool_(True)),
        (("a", 7), ("a", numpy.int32(7))),
    ],
    ids=named,
)
def test_equal_keys_have_the_same_hash(left: object, right: object) -> None:
    assert left == right
    assert stable_hash(left) == stable_hash(right)


def test_different_keys_mostly_have_different_hashes() -> None:
    keys = [*range(100), *map(str, range(100)), *((n, str(n)) for n in range(100))]
    keys += [Place(str(n), n) for n in range(100)]
    keys += [NOON + datetime.timedelta(hours=n) for n in range(100)]
    assert len({stable_hash(key) for key in keys}) > 490


def test_objects_of_an_unknown_type_have_the_same_hash() -> None:
    assert stable_hash(Odd()) == stable_hash(Odd())


def test_nan_has_one_hash_too() -> None:
    assert stable_hash(float("nan")) == stable_hash(float("nan")) == 0


def test_it_does_not_depend_on_the_process() -> None:
    script = (
        "import datetime\n"
        "from flow_spark.items.hashing import stable_hash\n"
        "print(*(stable_hash(key) for key in ('spam', b'spam', ('a', None), frozenset('abc'), "
        "datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1))), hash('spam'))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.split()
        for seed in ("1", "2")
    ]
    assert said[0][:-1] == said[1][:-1]
    assert said[0][-1] != said[1][-1]


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 8, 32, 200])
def test_spark_puts_each_value_into_the_partition_it_is_for(
    spark: SparkSession, partitions: int
) -> None:
    values = partition_values(partitions)
    df = spark.createDataFrame([(value,) for value in values], "value int")

    placed = df.repartition(partitions, "value").select("value", sql.spark_partition_id())

    assert dict(map(tuple, placed.collect())) == {value: n for n, value in enumerate(values)}
