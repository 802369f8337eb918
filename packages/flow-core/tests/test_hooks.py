"""Dropped errors and items go to hooks, never to the void."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from threading import Thread

import pytest

from flow_core import hooks
from flow_core.hooks import Hook
from flow_core.testing import TIMEOUT_S, Drops, recorded_drops


@pytest.fixture
def no_recording(drops: Drops) -> Iterator[None]:
    """As in a user's program, where nobody has added a function."""
    functions = {
        hook: dict(hook._functions) for hook in (hooks.dropped_errors, hooks.dropped_items)
    }
    for hook in functions:
        hook.remove("flow_core.testing")
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
