"""Data between the driver and Python workers, tried with a separate worker process."""

from __future__ import annotations

import enum
import fnmatch
import functools
import importlib
import pickle
import subprocess
import sys
import threading
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NewType, cast

import pytest

import flow_core as flow
from flow_core.stages import Program
from flow_core.structure import stages_of
from flow_spark.channel.wire import Kind
from flow_spark.errors import NotPicklableError, RemoteError, RemoteTracebackError
from flow_spark.pickling.by_value import registered_by_value
from flow_spark.pickling.chunks import FRAME_BYTES, chunks
from flow_spark.pickling.codec import decode, encode
from flow_spark.pickling.failures import load_error
from flow_spark.pickling.pickles import ItemSender, TaskSender, dumps

WORKER = """
import pickle, sys
from flow_spark.pickling.codec import encode
from flow_spark.pickling.failures import dump_error
from flow_spark.pickling.pickles import TaskSender
while True:
    try:
        function = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    try:
        answer = encode(function(), TaskSender())
    except Exception as error:
        answer = dump_error(error)
    pickle.dump(answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""

InWorker = Callable[[Any], Any]


@pytest.fixture(scope="module")
def in_worker() -> Iterator[InWorker]:
    """The answer of a Python worker to ``function()``: encoded items, or an encoded error."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as worker:
        sent, received = worker.stdin, worker.stdout
        assert sent is not None
        assert received is not None

        def run(function: Any) -> Any:
            sent.write(dumps(function, "the function"))
            sent.flush()
            return pickle.load(received)

        yield run
        sent.close()


@dataclass
class Plain:
    a: int
    b: Any = None


@dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    b: str


class Named(NamedTuple):
    a: int
    b: str = "b"


@dataclass
class Single:
    only: int


class Colour(enum.Enum):
    RED = 1


class Custom:
    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Custom) and other.value == self.value

    __hash__ = None  # type: ignore[assignment]  # mutable


@dataclass
class WithInit:
    """Must not be built by its __init__ again, which would count twice."""

    a: int
    doubled: int = field(init=False)

    def __post_init__(self) -> None:
        self.doubled = 2 * self.a
        self.a += 1


CASES: dict[str, tuple[Any, Kind]] = {
    "ints": (lambda: [1, 2], Kind.PICKLE),
    "tuples": (lambda: [(1, "a"), (2, None)], Kind.PICKLE),
    "mixed": (lambda: [1, "a", Plain(1)], Kind.PICKLE),
    "dataclasses": (lambda: [Plain(1), Plain(2, [3])], Kind.RECORDS),
    "frozen, with slots": (lambda: [Frozen(1, "a"), Frozen(2, "b")], Kind.RECORDS),
    "named tuples": (lambda: [Named(1), Named(2, "c")], Kind.RECORDS),
    "one field": (lambda: [Single(1), Single(2)], Kind.RECORDS),
    "with __init__": (lambda: [WithInit(1)], Kind.RECORDS),
    "nested": (lambda: [Plain(1, Plain(2, Named(3)))], Kind.RECORDS),
    "in tuples": (lambda: [(Plain(1), Colour.RED), (Frozen(1, "a"), None)], Kind.PICKLE),
    "enums": (lambda: [Colour.RED], Kind.PICKLE),
    "other classes": (lambda: [Custom(1), Custom(2)], Kind.PICKLE),
    "classes themselves": (lambda: [Plain, Colour], Kind.PICKLE),
}


@pytest.mark.parametrize("name", CASES)
def test_items_come_back_as_instances_of_the_drivers_own_classes(
    name: str, in_worker: InWorker
) -> None:
    function, kind = CASES[name]

    encoded = in_worker(function)

    assert encoded[0] is kind
    items, found = function(), list(decode(*encoded))
    assert found == items
    assert [type(item) for item in found] == [type(item) for item in items]


def test_classes_of_a_function_come_back_as_themselves(in_worker: InWorker) -> None:
    @dataclass
    class Local:
        a: int

    (found,) = decode(*in_worker(lambda: [Local(1)]))

    assert type(found) is Local
    assert found == Local(1)


Beside = Callable[..., types.ModuleType]


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Beside]:
    """Imports the first of some modules, from a folder that workers do not know."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def imported(**sources: str) -> types.ModuleType:
        for module, source in sources.items():
            (tmp_path / f"{module}.py").write_text(source)
        return importlib.import_module(next(iter(sources)))

    yield imported
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_modules_that_workers_cannot_import_go_by_value_whatever_their_name(
    in_worker: InWorker, beside: Beside
) -> None:
    jobs = beside(
        flow_jobs="import flow_rates\nFEE = 1\ndef price(n): return n * flow_rates.rate() + FEE\n",
        flow_rates="import flow_jobs, json\ndef rate(): return json.loads('3') + flow_jobs.FEE\n",
    )
    price = jobs.price

    assert decode(*in_worker(lambda: [jobs.price(2), price(3)])) == [9, 13]
    assert not {"flow_jobs", "flow_rates"} & registered_by_value()


def test_a_module_that_holds_what_cannot_be_sent_goes_by_its_name(
    beside: Beside,
) -> None:
    jobs = beside(flow_jobs="import threading\nlock = threading.Lock()\n")

    assert pickle.loads(dumps(lambda: jobs, "it"))() is jobs


def test_attributes_beyond_the_fields_are_kept(in_worker: InWorker) -> None:
    def make() -> list[Plain]:
        item = Plain(1)
        item.extra = "kept"  # type: ignore[attr-defined]  # that is the point
        return [item]

    kind, payload = in_worker(make)
    (found,) = decode(kind, payload)

    assert kind is Kind.PICKLE
    assert found.extra == "kept"


def test_items_go_to_workers_with_the_classes_that_these_cannot_import(in_worker: InWorker) -> None:
    sender = ItemSender()
    kind, payload = encode([Frozen(1, "a"), Frozen(2, "b")], sender)
    classes = tuple(sender.classes)
    assert classes == (Frozen,)

    def there() -> list[Any]:
        from flow_spark.pickling.codec import decode

        assert classes
        return [item.a for item in decode(kind, payload)]

    assert list(decode(*in_worker(there))) == [1, 2]


def test_batches_are_bounded_in_bytes() -> None:
    items = [bytes(100_000)] * 200

    made = list(chunks(iter(items), TaskSender()))

    assert sum(chunk.rows for chunk in made) == 200
    assert max(len(chunk.payload) for chunk in made) < 2 * FRAME_BYTES + 1000


def test_a_large_item_has_a_separate_batch() -> None:
    items = [bytes(10), bytes(5 * FRAME_BYTES), bytes(10)]

    made = list(chunks(iter(items), TaskSender()))

    assert [item for chunk in made for item in decode(chunk.kind, chunk.payload)] == items


def test_items_before_a_failing_one_are_sent_first() -> None:
    def items() -> Any:
        yield from range(100)
        raise KeyError("late")

    made = []
    with pytest.raises(KeyError, match="late"):
        made.extend(chunks(items(), TaskSender()))

    assert [item for chunk in made for item in decode(chunk.kind, chunk.payload)] == list(
        range(100)
    )


def test_items_that_come_slowly_do_not_wait_for_a_full_batch() -> None:
    never = threading.Event()

    def items() -> Any:
        yield from range(5000)
        for number in range(100):
            never.wait(0.01)
            yield number

    sizes = [chunk.rows for chunk in chunks(items(), TaskSender())]

    assert sum(sizes) == 5100
    assert max(sizes) > 500
    assert max(sizes[-3:]) < 10


@dataclass
class Sample:
    """An object for each item, and the values of its fields."""

    number: int
    half: float


def test_the_collector_has_nothing_to_do_for_items_on_their_way(
    collections: Callable[[], int],
) -> None:
    sent = list(chunks((Sample(number, number / 2) for number in range(20_000)), ItemSender()))
    assert collections() < 5

    numbers = [item.number for chunk in sent for item in decode(chunk.kind, chunk.payload)]

    assert numbers == list(range(20_000))
    assert collections() < 10


def test_items_that_the_collector_need_not_look_at_come_in_larger_batches() -> None:
    def largest(items: Iterator[Any]) -> int:
        return max(chunk.rows for chunk in chunks(items, TaskSender()))

    assert largest(iter(range(20_000))) > 1_000
    assert largest(Sample(number, 0.5) for number in range(20_000)) < 300
    assert largest((number, []) for number in range(20_000)) < 300


class NeedsTwoError(Exception):
    """Cannot be unpickled the default way."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")


class OwnError(ValueError):
    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _own_error, (str(self), self.code)


def _own_error(message: str, code: int) -> OwnError:
    return OwnError(message, code=code)


def test_an_error_comes_back_as_its_own_type_with_the_remote_traceback(in_worker: InWorker) -> None:
    def fail() -> None:
        error = OwnError("went wrong", code=7)
        error.add_note("while testing")
        raise error

    found = load_error(in_worker(fail), 3, 42)

    assert type(found) is OwnError
    assert str(found) == "went wrong"
    assert found.code == 7
    assert found.__notes__ == ["while testing"]
    cause = found.__cause__
    assert isinstance(cause, RemoteTracebackError)
    assert (cause.partition, cause.task) == (3, 42)
    assert "raise error" in cause.text
    assert "in fail" in cause.text


def test_the_chain_of_an_error_is_kept(in_worker: InWorker) -> None:
    def fail() -> None:
        try:
            {}["missing"]
        except KeyError as error:
            raise OwnError("outer", code=1) from error

    found = load_error(in_worker(fail), 0, 0)

    assert type(found.__cause__) is KeyError
    assert isinstance(found.__cause__.__cause__, RemoteTracebackError)


@pytest.mark.parametrize("hold", ["a lock", "two arguments"])
def test_an_error_that_cannot_be_pickled_arrives_as_text(hold: str, in_worker: InWorker) -> None:
    def fail() -> None:
        if hold == "two arguments":
            raise NeedsTwoError(1, "two")
        error = OwnError("with a lock", code=1)
        error.__dict__["lock"] = threading.Lock()
        error.__class__.__reduce__ = Exception.__reduce__
        raise error

    found = load_error(in_worker(fail), 0, 0)

    assert isinstance(found, RemoteError)
    assert found.type_name.endswith("NeedsTwoError" if hold == "two arguments" else "OwnError")
    assert found.message in ("1: two", "with a lock")
    assert "in fail" in found.traceback_text


LOCK = threading.Lock()


def uses_the_lock(n: int) -> int:
    with LOCK:
        return n


class Holder:
    def __init__(self) -> None:
        self.handle = threading.Lock()

    def method(self, n: int) -> int:
        return n


def captured() -> Any:
    guard = threading.Lock()
    return flow.range(3).map(lambda n: (guard, n))


def through_a_global() -> Any:
    return flow.range(3).map(lambda n: uses_the_lock(n) + 1)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (captured, r"captures the variable 'guard', a _thread\.lock"),
        (
            through_a_global,
            (
                r"uses the global 'uses_the_lock', the function 'uses_the_lock' "
                r"\(test_pickling\.py:\d+\)\n  the function 'uses_the_lock' .* "
                r"uses the global 'LOCK', a _thread\.lock"
            ),
        ),
        (
            lambda: flow.range(3).map(Holder().method),
            r"is a method of a \S*Holder\n  the Holder has in 'handle' a _thread\.lock",
        ),
        (
            lambda: flow.range(3).scan(lambda a, b: a, threading.Lock()),
            r"has as 'seed' a _thread\.lock",
        ),
    ],
)
def test_an_object_that_cannot_be_sent_is_named(make: Any, says: str) -> None:
    program = Program[Any, Any](stages_of(make()))

    with pytest.raises(NotPicklableError, match=says) as caught:
        dumps(program, "the stages of this flow")

    text = str(caught.value)
    assert text.startswith("the stages of this flow cannot be sent to Spark:\n  the stage ")
    assert "test_pickling.py:" in text
    assert "create them inside the function" in text


def test_an_item_that_cannot_be_sent_is_named() -> None:
    items: list[object] = [1, 2, {"handle": threading.Lock()}]

    with pytest.raises(NotPicklableError, match=r"item 2 of a batch.*\n.*'handle' a _thread\.lock"):
        encode(items, TaskSender())


Number = NewType("Number", int)


@functools.lru_cache(maxsize=7)
def tripled(n: int) -> int:
    return n * 3


@functools.cache
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


class Doubling:
    @staticmethod
    @functools.cache
    def doubled(n: int) -> int:
        return n * 2


def test_functions_with_a_cache_go_by_value_where_a_worker_cannot_import_them(
    in_worker: InWorker,
) -> None:
    def used() -> list[object]:
        found = [tripled(2), tripled.cache_parameters()["maxsize"], *map(tripled, [1, 2])]
        return [*found, fibonacci(30), fibonacci.cache_info().currsize, Doubling.doubled(2)]

    assert list(decode(*in_worker(used))) == [6, 7, 3, 6, 832040, 31, 4]


def test_a_function_with_a_cache_that_a_worker_finds_goes_by_name() -> None:
    assert pickle.loads(dumps(fnmatch._compile_pattern, "it")) is fnmatch._compile_pattern


def test_a_new_type_goes_by_value(in_worker: InWorker) -> None:
    def named() -> list[object]:
        return [Number(3), Number.__name__, Number.__supertype__ is int]

    assert list(decode(*in_worker(named))) == [3, "Number", True]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs typing.TypeAliasType, of Python 3.12")
def test_an_alias_of_a_type_goes_by_value(in_worker: InWorker) -> None:
    alias: Any = cast("Any", typing).TypeAliasType("Alias", list[int])

    def named() -> list[object]:
        return [alias.__name__, alias.__value__ == list[int]]

    assert list(decode(*in_worker(named))) == ["Alias", True]
