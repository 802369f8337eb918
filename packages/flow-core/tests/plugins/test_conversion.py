"""`flow_core.from_`: the converter that counts, and the error where there is none."""

from __future__ import annotations

import asyncio
import collections.abc
import importlib
import subprocess
import sys
from abc import ABC
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import flow_core as flow
from flow_core import NoConverterError, PluginError, Subscriber
from flow_core.plugins import PluginHost
from flow_testing import TIMEOUT_S

Install = Callable[..., Path]


@pytest.fixture(autouse=True)
def core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plugin but the core's, whatever else is installed here."""
    use(PluginHost({"FLOW_DISABLE_PLUGINS": "*"}), monkeypatch)


def use(host: PluginHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flow_core.plugins.host._host", host)


class Numbers:
    """A publisher that inherits from nothing."""

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        flow.range(3).subscribe(subscriber)


class Foreign(ABC):  # noqa: B024 - it only names what it is alike
    """The type that a plugin accepts: any object with ``foreign``."""

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return hasattr(other, "foreign")


# --- what the core converts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [[0, 1, 2], (0, 1, 2), range(3), iter([0, 1, 2]), {0: "a", 1: "b", 2: "c"}]
)
def test_an_iterable_gives_what_a_for_loop_gives(value: Any) -> None:
    assert list(flow.from_(value)) == [0, 1, 2]


def test_a_flow_is_returned_as_it_is() -> None:
    numbers = flow.range(3)
    assert flow.from_(numbers) is numbers


def test_an_object_with_subscribe_is_a_publisher_if_nothing_else_fits() -> None:
    assert list(flow.from_(Numbers())) == [0, 1, 2]

    class Both(Numbers):
        def __iter__(self) -> Iterator[str]:
            return iter("ab")

    assert list(flow.from_(Both())) == ["a", "b"]


def test_a_future_gives_its_result() -> None:
    future: Future[int] = Future()
    future.set_result(42)
    assert list(flow.from_(future)) == [42]


def test_async_iterables_futures_and_coroutines_are_awaited() -> None:
    async def letters() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    async def answer() -> int:
        return 42

    async def everything() -> list[Any]:
        task = asyncio.get_running_loop().create_task(answer())
        return [
            [item async for item in flow.from_(letters())],
            [item async for item in flow.from_(answer())],
            [item async for item in flow.from_(task)],
        ]

    assert asyncio.run(everything()) == [["a", "b"], [42], [42]]


# --- which one counts ---------------------------------------------------------------------------


CONVERTERS = """
    import flow_core
    from flow_core.plugins import ConverterSpec, hookimpl

    def whole(value):
        return flow_core.just("converted")

    @hookimpl
    def flow_converters():
        yield ConverterSpec("{name}", __name__ + ":whole", accepts="{accepts}")
"""


def converted(
    install: Install, monkeypatch: pytest.MonkeyPatch, accepts: str, value: object
) -> list[object]:
    install("acme-conv", CONVERTERS.format(name="acme", accepts=accepts))
    use(PluginHost({}), monkeypatch)
    return list(flow.from_(value))


def test_the_nearest_class_counts_before_the_general_ones(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deck(collections.UserList[int]): ...

    assert converted(install, monkeypatch, "collections:UserList", Deck([1])) == ["converted"]
    assert list(flow.from_([1])) == [1]


def test_an_abstract_class_of_a_plugin_counts_before_those_of_the_core(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Alike(list[int]):
        foreign = True

    monkeypatch.setitem(sys.modules, "foreign_x", __import__("types").ModuleType("foreign_x"))
    sys.modules["foreign_x"].__dict__["Foreign"] = Foreign
    assert converted(install, monkeypatch, "foreign_x:Foreign", Alike([1])) == ["converted"]


def test_the_more_specific_of_two_abstract_classes_counts(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = {"a": 1}.items()
    accepts = "collections.abc:ItemsView"
    assert converted(install, monkeypatch, accepts, value) == ["converted"]
    assert list(flow.from_({"a": 1}.keys())) == ["a"]


def test_a_class_that_is_not_imported_yet_is_not_imported_to_decide(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("acme-conv", CONVERTERS.format(name="acme", accepts="xml.dom.pulldom:PullDOM"))
    use(PluginHost({}), monkeypatch)
    sys.modules.pop("xml.dom.pulldom", None)
    assert list(flow.from_([1])) == [1]
    assert "xml.dom.pulldom" not in sys.modules


def test_two_converters_of_one_class_are_reported_with_both_distributions(
    install: Install,
) -> None:
    install("acme-a", CONVERTERS.format(name="one", accepts="decimal:Decimal"))
    install("acme-b", CONVERTERS.format(name="two", accepts="decimal:Decimal"), version="2.2")
    (problem,) = [each for each in PluginHost({}).problems if "decimal" in each.message]
    assert problem.plugin.distribution == "acme-b"
    assert "'one' of acme-a 1.0 and by 'two' of acme-b 2.2; the first one counts" in problem.message
    assert "FLOW_DISABLE_PLUGINS=acme-a" in problem.message


def test_a_list_is_given_to_a_converter_whose_class_is_imported_later(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = install(
        "acme-rows",
        """
        from flow_core.plugins import ConverterSpec, hookimpl
        import flow_core

        def convert(value):
            return flow_core.just("converted")

        @hookimpl
        def flow_converters():
            yield ConverterSpec("rows", "acme_rows_plugin:convert", accepts="acme_rows:Rows")
        """,
    )
    (site / "acme_rows.py").write_text(
        "from abc import ABC\nclass Rows(ABC): ...\nRows.register(list)\n", "utf-8"
    )
    use(PluginHost({}), monkeypatch)
    assert list(flow.from_([1])) == list(flow.from_([1])) == [1]
    monkeypatch.delitem(sys.modules, "acme_rows", raising=False)
    importlib.import_module("acme_rows")
    assert list(flow.from_([1])) == ["converted"]
    assert list(flow.from_((1,))) == [1]


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["text", b"text", bytearray(b"text"), memoryview(b"text")])
def test_text_is_refused_with_both_things_that_it_may_mean(text: Any) -> None:
    with pytest.raises(NoConverterError, match=r"just\(text\).*from_iterable\(text\)"):
        flow.from_(text)


def test_a_plugin_may_accept_text_of_a_class_that_it_defines(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = __import__("types").ModuleType("urls_x")
    module.__dict__["Url"] = type("Url", (str,), {})
    monkeypatch.setitem(sys.modules, "urls_x", module)
    assert converted(install, monkeypatch, "urls_x:Url", module.Url("x")) == ["converted"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "None is not an item, and no source"),
        (42, r"of a builtins.int: flow_core.just\(42\) is a flow of it as one item$"),
        (Path(), r"; the installed ones accept .*collections.abc:Iterable"),
        (Path(), r"not installed: pyspark.sql.*DataFrame \(pip install flow-spark\)"),
        (Path(), r"reactivex.*Observable \(pip install flow-rxcompat\)"),
        (Path(), r"flow_core.just\(value\) is a flow of it as one item"),
        (list, "builtins.list is a class; make an object of it first"),
        (len, r"flow_core.from_callable\(len\) is a flow of what it returns"),
    ],
)
def test_the_error_for_a_refused_value_lists_the_accepted_types_and_their_packages(
    value: object, says: str
) -> None:
    with pytest.raises(NoConverterError, match=says) as caught:
        flow.from_(value)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("module", "name", "package"),
    [
        ("pyspark.sql.dataframe", "DataFrame", "flow-spark"),
        ("pyspark.sql.connect.dataframe", "DataFrame", "flow-spark"),
        ("reactivex.observable.observable", "Observable", "flow-rxcompat"),
    ],
)
def test_a_class_with_a_converter_in_a_package_is_not_taken_for_a_general_kind(
    module: str, name: str, package: str
) -> None:
    # An Observable is awaitable and has subscribe; neither means what it means here.
    def nothing(self: object, *args: object) -> Iterator[int]:
        return iter(())

    members = {"__module__": module, "__await__": nothing, "subscribe": nothing}
    known = type(name, (), members)
    derived = type("Derived", (known,), {"__iter__": nothing})
    for value in (known(), derived()):
        with pytest.raises(NoConverterError, match=f"pip install {package}"):
            flow.from_(value)


@pytest.mark.parametrize(
    ("module", "rows"),
    [
        ("pandas", r'to_dict\("records"\)'),
        ("pandas.core.frame", r'to_dict\("records"\)'),
        ("polars.dataframe.frame", r"iter_rows\(named=True\)"),
    ],
)
def test_a_table_in_memory_is_not_mistaken_for_an_iterable_of_its_columns(
    module: str, rows: str
) -> None:
    frame = type("DataFrame", (), {"__module__": module, "__iter__": lambda _: iter(["a", "b"])})
    for value in (frame(), type("Derived", (frame,), {})()):
        with pytest.raises(NoConverterError, match=rf"from_iterable\(frame.{rows}\) .* its rows"):
            flow.from_(value)


def test_a_converter_that_makes_no_flow_is_named_with_its_plugin(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = CONVERTERS.format(name="acme", accepts="decimal:Decimal")
    install("acme-conv", code.replace('flow_core.just("converted")', "42"))
    use(PluginHost({}), monkeypatch)
    decimal = __import__("decimal")
    with pytest.raises(PluginError, match=r"'acme' of acme-conv 1.0 made no Flow .*but 42"):
        flow.from_(decimal.Decimal(1))


def test_the_scan_happens_at_the_first_conversion_and_not_before() -> None:
    script = (
        "import sys, flow_core\n"
        "assert 'flow_core.plugins' not in sys.modules\n"
        "assert list(flow_core.from_([1])) == [1]\n"
        "assert 'flow_core.plugins' in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", script], check=True, timeout=12 * TIMEOUT_S
    )
