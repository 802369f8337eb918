"""Dropped errors and items go to hooks, never to the void."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from threading import Event, Thread
from typing import Any, final

import pytest

import flow_core as flow
from flow_core import CoreSubscriber, Flow, Operator, Subscription, hooks
from flow_core.hooks import Chain, Hook
from flow_core.subscribers import StrictSubscriber
from flow_testing import TIMEOUT_S, Drops, observe, recorded_drops


@pytest.fixture
def no_recording(drops: Drops) -> Iterator[None]:
    """As in a user's program, where no function has been added."""
    functions: dict[Hook[Any], dict[str, Any]] = {
        hook: dict(hook._functions) for hook in (hooks.dropped_errors, hooks.dropped_items)
    }
    for hook in functions:
        hook.remove("flow_testing")
    yield
    for hook, before in functions.items():
        for key, function in before.items():
            hook.add(key, function)


def test_a_dropped_error_is_logged_with_its_traceback(
    no_recording: None, caplog: pytest.LogCaptureFixture
) -> None:
    error = ValueError("nobody wants me")
    hooks.drop_error(error)
    (record,) = caplog.records
    assert record.name == "flow"
    assert record.levelno == logging.ERROR
    assert "nobody wants me" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_a_dropped_item_is_logged_for_debugging_only(
    no_recording: None, caplog: pytest.LogCaptureFixture
) -> None:
    hooks.drop_item(42)
    assert caplog.records == []
    with caplog.at_level(logging.DEBUG, "flow"):
        hooks.drop_item(42)
    assert "42" in caplog.text


def test_functions_are_called_in_the_order_of_their_keys() -> None:
    hook: Hook[int] = Hook("test")
    seen: list[tuple[str, int]] = []
    assert hook.call is None
    hook.add("a", lambda value: seen.append(("a", value)))
    hook.add("b", lambda value: seen.append(("b", value)))
    hook.add("a", lambda value: seen.append(("A", value)))
    assert hook.call is not None
    hook.call(1)
    assert seen == [("A", 1), ("b", 1)]
    hook.remove("a")
    hook.remove("unknown")
    hook.call(2)
    assert seen[2:] == [("b", 2)]
    hook.remove("b")
    assert hook.call is None


def test_a_scoped_function_is_gone_after_its_block_and_restores_what_it_replaced() -> None:
    hook: Hook[int] = Hook("test")
    seen: list[str] = []
    with hook.scoped("key", lambda _: seen.append("outer")):
        with suppress(ValueError), hook.scoped("key", lambda _: seen.append("inner")):
            assert hook.call is not None
            hook.call(1)
            raise ValueError
        assert hook.call is not None
        hook.call(2)
    assert seen == ["inner", "outer"]
    assert hook.call is None


def test_hooks_may_be_changed_by_many_threads() -> None:
    hook: Hook[int] = Hook("test")

    def change(key: str) -> None:
        for _ in range(200):
            with hook.scoped(key, lambda _: None):
                assert hook.call is not None

    threads = [Thread(target=change, args=(str(index),)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert hook.call is None


def test_scopes_of_several_threads_under_one_key_may_end_in_any_order() -> None:
    hook: Hook[int] = Hook("test")
    seen: list[tuple[str, int]] = []

    def noting(name: str) -> Callable[[int], object]:
        return lambda value: seen.append((name, value))

    hook.add("key", noting("base"))
    scopes = {name: hook.scoped("key", noting(name)) for name in ("first", "second", "third")}
    order = [("second", 1), ("first", 2), ("third", 3)]
    for scope in scopes.values():
        scope.__enter__()
    for name, value in order:
        assert hook.call is not None
        hook.call(value)
        scopes[name].__exit__(None, None, None)
    assert hook.call is not None
    hook.call(4)
    assert seen == [("third", 1), ("third", 2), ("third", 3), ("base", 4)]


def test_recorded_drops_of_an_inner_block_are_its_own(drops: Drops) -> None:
    outer_error, inner_error = ValueError("outer"), ValueError("inner")
    with ExitStack() as stack:
        inner = stack.enter_context(recorded_drops())
        hooks.drop_error(inner_error)
        hooks.drop_item(1)
    hooks.drop_error(outer_error)
    assert inner.take_errors() == [inner_error]
    assert inner.take_items() == [1]
    assert drops.take_errors() == [outer_error]
    hooks.drop_error(outer_error)
    with pytest.raises(AssertionError, match="no subscriber could receive"):
        drops.assert_no_errors()
    drops.take_errors()


# -- chains


def negated(value: int) -> int:
    return -value


def test_each_function_of_a_chain_gets_what_the_one_before_has_made() -> None:
    chain: Chain[int] = Chain("test")
    assert chain.call is None
    chain.add("double", lambda value: 2 * value)
    assert chain.call is not None
    assert chain.call(5) == 10
    chain.add("more", lambda value: value + 1)
    assert chain.call(5) == 11
    chain.add("double", negated)  # keeps its place
    assert chain.call(5) == -4
    chain.remove("more")
    assert chain.call is negated, "one function needs nobody around it"
    chain.remove("double")
    assert chain.call is None


def test_an_error_of_a_function_of_a_hook_is_logged_and_the_next_one_is_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hook: Hook[int] = Hook("test")
    seen: list[int] = []
    error = ValueError("mine")

    def fail(_: int) -> None:
        raise error

    hook.add("fail", fail)
    hook.add("note", seen.append)
    assert hook.call is not None
    hook.call(1)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("flow", logging.ERROR)
    assert record.getMessage() == "a function of the hook test raised: mine"
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    hook.remove("fail")
    hook.call(2)
    assert seen == [1, 2]


def test_a_fatal_error_propagates_from_a_hook() -> None:
    hook: Hook[BaseException] = Hook("test")

    def fail(error: BaseException) -> None:
        raise error

    hook.add("fail", fail)
    assert hook.call is not None
    for error in (KeyboardInterrupt(), SystemExit(), MemoryError()):
        with pytest.raises(type(error)):
            hook.call(error)


def test_a_hook_that_raises_for_an_item_that_waits_is_called_for_the_others() -> None:
    seen: list[int] = []

    def fail(item: int) -> None:
        seen.append(item)
        raise OSError("cannot close")

    with hooks.dropped_items.scoped("test", fail):
        hooks.drop_waiting(deque([1, 2, 3]))
    assert seen == [1, 2, 3]


# -- on_assembly


def appended(seen: list[str]) -> Callable[[Flow[Any]], Flow[Any]]:
    """A function for the hook that notes what it is shown."""

    def note(made: Flow[Any]) -> Flow[Any]:
        seen.append(repr(made))
        return made

    return note


def test_the_assembly_hook_sees_every_stage_and_every_operator_once() -> None:
    seen: list[str] = []
    with hooks.on_assembly.scoped("test", appended(seen)):
        made = flow.range(9).map(abs).hide().take(2)
    assert seen == [
        "range(0, 9) | map(abs)",
        "range(0, 9) | map(abs) | hide()",
        "range(0, 9) | map(abs) | hide() | take(count=2)",
    ]
    assert list(made) == [0, 1]
    seen.clear()
    flow.range(9).map(abs).hide()
    assert seen == []


def test_an_operator_made_of_stages_is_shown_by_its_stages() -> None:
    seen: list[str] = []
    doubled: Operator[int, Flow[int]] = Operator(
        "doubled", lambda made: made.map(negated).map(negated)
    )
    with hooks.on_assembly.scoped("test", appended(seen)):
        flow.range(2).pipe(doubled)
    assert seen == [
        "range(0, 2) | map(negated)",
        "range(0, 2) | map(negated) | map(negated)",
    ]


def test_a_flow_that_an_assembly_hook_assembles_is_not_shown_to_it_again() -> None:
    shown: list[str] = []

    def without_one(made: Flow[Any]) -> Flow[Any]:
        shown.append(repr(made))
        return made.filter(lambda n: n != -1).hide()

    with hooks.on_assembly.scoped("test", without_one):
        made = flow.range(4).map(negated)
    assert shown == ["range(0, 4) | map(negated)"]
    assert list(made) == [0, -2, -3]


def test_an_assembly_hook_may_replace_a_flow() -> None:
    def cut(made: Flow[Any]) -> Flow[Any]:
        return made.take(1)

    with hooks.on_assembly.scoped("test", cut):
        made = flow.range(4).map(negated)
    assert list(made) == [0]
    assert list(flow.range(4).map(negated)) == [0, -1, -2, -3]


@pytest.mark.parametrize("wrong", [None, 5, [1]])
def test_an_assembly_hook_that_returns_no_flow_is_refused_where_the_flow_is_assembled(
    wrong: Any,
) -> None:
    def broken(_: Flow[Any]) -> Any:
        return wrong

    with (
        hooks.on_assembly.scoped("test", broken),
        pytest.raises(TypeError, match="on_assembly hook must return a Flow"),
    ):
        flow.range(4).map(negated)


def test_an_assembly_hook_that_raises_fails_the_assembly_and_is_called_again_next_time() -> None:
    calls: list[str] = []

    def fail(made: Flow[Any]) -> Flow[Any]:
        calls.append(repr(made))
        raise LookupError("mine")

    with hooks.on_assembly.scoped("test", fail):
        for _ in range(2):
            with pytest.raises(LookupError, match="mine"):
                flow.range(4).map(negated)
    assert len(calls) == 2


def test_assembly_hooks_work_in_every_thread_and_do_not_hide_each_others_flows() -> None:
    seen: list[str] = []
    inside, go_on = Event(), Event()

    def wait(made: Flow[Any]) -> Flow[Any]:
        seen.append(repr(made))
        if "slow" in repr(made):
            inside.set()
            assert go_on.wait(TIMEOUT_S)
        return made

    with hooks.on_assembly.scoped("test", wait):
        thread = Thread(target=lambda: flow.range(1).name("slow"))
        thread.start()
        assert inside.wait(TIMEOUT_S)
        flow.range(1).name("quick")  # while the other thread is in the hook
        go_on.set()
        thread.join(TIMEOUT_S)
    assert len(seen) == 2


# -- on_subscribe


@final
class Counting(CoreSubscriber[Any]):
    """The subscriber that a hook puts before another one, to count its items."""

    def __init__(self, downstream: CoreSubscriber[Any]) -> None:
        self.downstream = downstream
        self.count = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.downstream.on_subscribe(subscription)

    def on_next(self, item: Any, /) -> None:
        self.count += 1
        self.downstream.on_next(item)

    def on_error(self, error: BaseException, /) -> None:
        self.downstream.on_error(error)

    def on_complete(self) -> None:
        self.downstream.on_complete()


def test_a_subscribe_hook_may_put_a_subscriber_before_another() -> None:
    made: list[Counting] = []

    def counted(subscriber: CoreSubscriber[Any]) -> CoreSubscriber[Any]:
        made.append(Counting(subscriber))
        return made[-1]

    with hooks.on_subscribe.scoped("test", counted):
        observe(flow.range(3)).assert_result(0, 1, 2)
        handle = flow.range(5).subscribe()
    assert handle.disposed
    assert [counting.count for counting in made] == [3, 5]
    observe(flow.range(3)).assert_result(0, 1, 2)
    assert len(made) == 2


def test_a_subscribe_hook_sees_the_subscribers_of_operators_too() -> None:
    seen: list[str] = []

    def note(subscriber: CoreSubscriber[Any]) -> CoreSubscriber[Any]:
        seen.append(type(subscriber).__name__)
        return subscriber

    with hooks.on_subscribe.scoped("test", note):
        flow.range(3).hide().map(negated).subscribe()
    assert seen == ["CallbackSubscriber", "_Hidden"]


def test_a_foreign_subscriber_comes_with_its_guard() -> None:
    seen: list[CoreSubscriber[Any]] = []

    def note(subscriber: CoreSubscriber[Any]) -> CoreSubscriber[Any]:
        seen.append(subscriber)
        return subscriber

    class Foreign:
        def on_subscribe(self, subscription: Subscription, /) -> None: ...

        def on_next(self, item: int, /) -> None: ...

        def on_error(self, error: BaseException, /) -> None: ...

        def on_complete(self) -> None: ...

    with hooks.on_subscribe.scoped("test", note):
        flow.range(3).subscribe(Foreign())
    (only,) = seen
    assert isinstance(only, StrictSubscriber)


def test_iterating_over_a_synchronous_flow_has_no_subscriber() -> None:
    seen: list[object] = []

    def note(subscriber: CoreSubscriber[Any]) -> CoreSubscriber[Any]:
        seen.append(subscriber)
        return subscriber

    with hooks.on_subscribe.scoped("test", note):
        assert list(flow.range(3).map(negated)) == [0, -1, -2]
        assert seen == []
        assert list(flow.range(3).hide()) == [0, 1, 2]
    assert [type(each).__name__ for each in seen] == ["BlockingSubscriber", "_Hidden"]
