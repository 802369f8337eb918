"""Records made without calling their class: they are what the class makes, or it is called."""

import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import pytest
from pyspark import cloudpickle

from flow_spark.items.columns import PORTION
from flow_spark.items.records import maker_in_c

T = TypeVar("T")
COUNT = 2 * PORTION + 3
COLUMNS = [list(range(COUNT)), [str(number) for number in range(COUNT)]]


class Pair(NamedTuple):
    x: int
    label: str = "?"

    def twice(self) -> int:
        return 2 * self.x


Untyped = namedtuple("Untyped", ["x", "label"])  # noqa: PYI024


@dataclass(frozen=True, slots=True)
class Slotted:
    x: int
    label: str = "?"


@dataclass(frozen=True)
class Frozen:
    kinds: ClassVar[int] = 0
    x: int
    label: str = field(default_factory=str)


@dataclass(frozen=True, kw_only=True, slots=True, weakref_slot=True)
class ByKeyword:
    label: str
    x: int


@dataclass(frozen=True, slots=True)
class Base:
    x: int


@dataclass(frozen=True, slots=True)
class Derived(Base, Generic[T]):
    label: T


PLAIN = [Pair, Untyped, Slotted, Frozen, ByKeyword, Derived]


@pytest.mark.parametrize("cls", PLAIN)
def test_records_are_what_their_class_makes_of_the_same_values(cls: type[Any]) -> None:
    make = maker_in_c(cls, ("x", "label"))

    assert make is not None
    found = list(make(COLUMNS))
    assert found == [cls(x=x, label=label) for x, label in zip(*COLUMNS, strict=True)]
    assert {type(item) for item in found} == {cls}
    assert list(map(repr, found[:2])) == [repr(cls(x=x, label=str(x))) for x in (0, 1)]


@pytest.mark.parametrize("cls", PLAIN)
def test_a_batch_without_rows_gives_no_record(cls: type[Any]) -> None:
    make = maker_in_c(cls, ("x", "label"))

    assert make is not None
    assert list(make([[], []])) == []


def test_dataclasses_are_made_a_portion_at_a_time() -> None:
    make = maker_in_c(Slotted, ("x", "label"))
    asked: list[slice] = []

    class Column(list[Any]):
        def __getitem__(self, index: Any) -> Any:
            asked.append(index)
            return super().__getitem__(index)

    assert make is not None
    next(iter(make([Column(COLUMNS[0]), COLUMNS[1]])))
    assert asked == [slice(0, PORTION)]


def test_classes_that_came_by_value_are_plain_in_the_other_process_too() -> None:
    @dataclass(frozen=True, slots=True)
    class Sent:
        x: int
        label: str

    class SentPair(NamedTuple):
        x: int
        label: str

    program = (
        "import pickle, sys\n"
        "from flow_spark.items.records import maker_in_c\n"
        "for cls in pickle.load(sys.stdin.buffer):\n"
        "    make = maker_in_c(cls, ('x', 'label'))\n"
        "    assert list(make([[1], ['a']])) == [cls(1, 'a')]\n"
        "    print(cls.__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=cloudpickle.dumps([Sent, SentPair]),
        capture_output=True,
        check=True,
    )
    assert done.stdout.split() == [b"Sent", b"SentPair"]


class Subclass(Pair):
    def __new__(cls, x: int, label: str = "?") -> Self:
        return super().__new__(cls, -x, label)


class Replaced(NamedTuple):
    x: int
    label: str


_first = Replaced.__new__
Replaced.__new__ = lambda cls, x, label: _first(cls, -x, label)  # type: ignore[method-assign, assignment]


class Called(type):
    def __call__(cls, *args: Any, **named: Any) -> Any:
        return super().__call__(*args, **named)


@dataclass(frozen=True)
class WithPostInit:
    x: int
    label: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", -self.x)


@dataclass(frozen=True)
class WithNew:
    x: int
    label: str

    def __new__(cls, x: int, label: str) -> Self:
        return super().__new__(cls)


@dataclass(frozen=True)
class WithInit:
    x: int
    label: str

    def __init__(self, x: int, label: str) -> None:
        object.__setattr__(self, "x", -x)
        object.__setattr__(self, "label", label)


@dataclass(frozen=True)
class WithInitVar:
    x: int
    label: InitVar[str]


@dataclass(frozen=True)
class FilledAlone:
    x: int
    label: str = field(init=False, default="?")


@dataclass(frozen=True)
class ByMetaclass(metaclass=Called):
    x: int
    label: str


@dataclass
class Mutable:
    x: int
    label: str


class Undecorated(Frozen):
    def __init__(self, x: int, label: str) -> None:
        super().__init__(-x, label)


@pytest.mark.parametrize(
    "cls",
    [
        *(Subclass, Replaced, WithPostInit, WithNew, WithInit, WithInitVar, FilledAlone),
        *(ByMetaclass, Mutable, Undecorated, dict, tuple),
    ],
)
def test_a_class_with_code_of_the_user_or_without_gain_is_called(
    cls: Callable[..., object],
) -> None:
    assert maker_in_c(cls, ("x", "label")) is None  # type: ignore[arg-type]  # a class


@pytest.mark.parametrize("cls", [Pair, Slotted, Frozen])
def test_a_class_with_defaults_for_missing_columns_is_called(cls: type[Any]) -> None:
    assert maker_in_c(cls, ("x",)) is None
