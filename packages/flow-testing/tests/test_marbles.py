"""Marble diagrams are read, played, recorded and compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import MissingBackpressureError
from flow_testing import (
    Drops,
    MarbleError,
    MarbleSignal,
    MarbleSource,
    TestSubscriber,
    VirtualClock,
    assert_marbles,
    cold,
    hot,
    observe,
    parse_marbles,
    record_signals,
    to_marbles,
)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def short(line: str, *args: Any, **options: Any) -> list[tuple[float, object]]:
    """The signals of a line; completion as |, an error as #."""
    names = {"on_complete": "|", "on_error": "#"}
    return [
        (signal.time_s, names.get(signal.name, signal.value))
        for signal in parse_marbles(line, *args, **options).signals
    ]


# -- reading


@pytest.mark.parametrize(
    ("line", "signals"),
    [
        ("", []),
        ("----", []),
        ("|", [(0, "|")]),
        ("-a-b-(c,d)-|", [(1, "a"), (3, "b"), (5, "c"), (5, "d"), (11, "|")]),
        ("-a-b-(cd)-|", [(1, "a"), (3, "b"), (5, "c"), (5, "d"), (10, "|")]),
        ("a--b---#", [(0, "a"), (3, "b"), (7, "#")]),
        ("--1--(2,3)-4--|", [(2, 1), (5, 2), (5, 3), (11, 4), (14, "|")]),
        ("(12,3,4)--|", [(0, 12), (0, 3), (0, 4), (10, "|")]),
        ("(foo,bar|)", [(0, "foo"), (0, "bar"), (0, "|")]),
        ("(ab#)", [(0, "a"), (0, "b"), (0, "#")]),
        ("- a -| ", [(1, "a"), (3, "|")]),
        ("ab|", [(0, "a"), (1, "b"), (2, "|")]),
        ("a-^-b", [(-2, "a"), (2, "b")]),
    ],
)
def test_a_line_parses_into_its_signals(line: str, signals: list[tuple[float, object]]) -> None:
    assert short(line) == signals


def test_values_and_errors_are_what_the_reader_says() -> None:
    error = ValueError()
    parsed = parse_marbles("-a1#", {"a": 10, 1: "one"}, error=error, frame_s=0.1)
    assert parsed.signals == (
        MarbleSignal(0.1, "on_next", 10),
        MarbleSignal(0.2, "on_next", "one"),
        MarbleSignal(0.3, "on_error", error),
    )
    assert isinstance(parse_marbles("#").signals[0].value, MarbleError)
    assert short("(foo,b)", {"foo": 1, "b": 2}) == [(0, 1), (0, 2)]


def test_a_line_marks_the_subscription_and_the_cancellation() -> None:
    parsed = parse_marbles("--^---!-", frame_s=0.5)
    assert (parsed.subscribed_s, parsed.cancelled_s, parsed.signals) == (1.0, 3.0, ())
    assert parse_marbles("-a|")[1:] == (None, None)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("-(a", "a group has no end"),
        ("-a)", "a group that was not opened"),
        ("((a))", "a group within a group"),
        ("(a-b)", "no time passes within a group"),
        ("a,b", "a comma separates"),
        ("^-^", r"a second \^"),
        ("-a|b", "nothing may follow"),
        ("-#|", "nothing may follow"),
    ],
)
def test_a_line_without_sense_is_refused(line: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_marbles(line)


def test_a_refused_line_is_shown_with_the_place() -> None:
    with pytest.raises(ValueError) as raised:
        parse_marbles("-a-b)")
    assert str(raised.value).splitlines()[1:] == ["  -a-b)", "      ^"]
    with pytest.raises(ValueError, match="None, which is not an item"):
        parse_marbles("a", {"a": None})
    with pytest.raises(ValueError, match="more than 0 s"):
        parse_marbles("a", frame_s=0)


# -- sources


def test_a_cold_source_starts_again_for_each_subscriber(clock: VirtualClock) -> None:
    source = cold("-a-b|", clock=clock)
    first = observe(source)
    clock.advance_by(2)
    second = observe(source)
    clock.advance_by(1)
    first.assert_items("a", "b").assert_not_terminated()
    second.assert_items("a")
    clock.run()
    first.assert_result("a", "b")
    second.assert_result("a", "b")
    assert clock.now() == 6.0
    source.assert_subscriptions("^", "--^")


def test_a_hot_source_runs_with_or_without_subscribers(clock: VirtualClock) -> None:
    source = hot("a-b^-c-d-|", clock=clock)
    first = observe(source)
    clock.advance_by(3)
    second = observe(source)
    clock.run()
    first.assert_result("c", "d")
    second.assert_result("d")
    late = observe(source)
    clock.run()
    late.assert_subscribed().assert_no_items().assert_not_terminated()


def test_an_item_that_a_hot_source_sends_at_the_time_of_the_subscription_is_missed(
    clock: VirtualClock,
) -> None:
    source = hot("-a-b|", clock=clock)
    assert to_marbles(source.flow, clock=clock, subscription="-^") == "---b|"


@pytest.mark.parametrize("make", [cold, hot])
def test_cancel_stops_a_source(make: Callable[..., MarbleSource[str]], clock: VirtualClock) -> None:
    source = make("-a-b-c|", clock=clock)
    subscriber = observe(source)
    clock.advance_by(3)
    subscriber.cancel()
    clock.run()
    subscriber.assert_items("a", "b").assert_silent_after_cancel()
    source.assert_subscriptions("^--!")
    with pytest.raises(AssertionError, match=r"expected the subscriptions .*3.0\)\]"):
        source.assert_subscriptions("^---!")


def test_a_cold_source_keeps_what_was_not_requested(clock: VirtualClock) -> None:
    subscriber = observe(cold("-a-b|", clock=clock), 1)
    clock.advance_by(10)
    subscriber.assert_items("a").assert_not_terminated().request(1)
    subscriber.assert_result("a", "b")


def test_a_hot_source_fails_for_want_of_demand(clock: VirtualClock, drops: Drops) -> None:
    subscriber = observe(hot("-a-b-c|", clock=clock), 1)
    clock.run()
    subscriber.assert_failure(MissingBackpressureError, "a").assert_error_message("at 3.0 s")
    assert drops.take_items() == ["b"]


def test_a_source_may_drop_what_was_not_requested(clock: VirtualClock, drops: Drops) -> None:
    subscriber = observe(hot("-a-b-c|", clock=clock, overflow="drop"), 1)
    clock.advance_by(4)
    subscriber.request(5)
    clock.run()
    subscriber.assert_result("a", "c")
    assert drops.take_items() == ["b"]


def test_items_kept_until_a_cancel_are_dropped(clock: VirtualClock, drops: Drops) -> None:
    subscriber = observe(cold("-a-b|", clock=clock), 0)
    clock.run()
    subscriber.cancel()
    assert drops.take_items() == ["a", "b"]


def test_a_wrong_request_fails_the_source(clock: VirtualClock) -> None:
    subscriber = observe(cold("-a-b|", clock=clock), 1)
    subscriber.subscription.request(-1)
    subscriber.assert_failure(ValueError).assert_error_message("§3.9")
    assert clock.pending == 0


def test_a_source_fails_with_the_very_error(clock: VirtualClock) -> None:
    error = KeyError()
    subscriber = observe(cold("-a#", {"a": 7}, clock=clock, error=error))
    clock.run()
    subscriber.assert_failure(error, 7)


@pytest.mark.parametrize(
    "make",
    [lambda c: cold("-^a", clock=c), lambda c: cold("-a!", clock=c), lambda c: hot("a!", clock=c)],
)
def test_a_source_has_no_marks_of_a_subscriber(
    clock: VirtualClock, make: Callable[[VirtualClock], object]
) -> None:
    with pytest.raises(ValueError, match="no !"):
        make(clock)


# -- recordings


@pytest.mark.parametrize(
    "line", ["-a-b-(cd)-|", "a", "", "-1--(2#)", "|", "--(ab|)", "(ab)(cd)", "----#"]
)
def test_a_line_that_is_played_and_drawn_is_the_line_again(line: str, clock: VirtualClock) -> None:
    assert to_marbles(cold(line, clock=clock).flow, clock=clock) == line
    assert to_marbles(parse_marbles(line, frame_s=0.1).signals, frame_s=0.1) == line


def test_items_are_drawn_by_their_names() -> None:
    signals = [
        MarbleSignal(0, "on_next", (1, 2)),
        MarbleSignal(1, "on_next", "word"),
        MarbleSignal(2, "on_next", "-"),
        MarbleSignal(3, "on_next", True),
    ]
    assert to_marbles(signals, {"p": (1, 2)}) == "p???"


def test_signals_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(ValueError, match=r"not at a frame of 1.0 s"):
        to_marbles([MarbleSignal(0.5, "on_complete")])
    together = [MarbleSignal(0, "on_next", "a"), MarbleSignal(0, "on_next", "b")]
    with pytest.raises(ValueError, match="too close"):
        to_marbles([*together, MarbleSignal(1, "on_complete")])


def test_a_recording_says_what_came_when(clock: VirtualClock) -> None:
    clock.advance_by(100)
    source = cold("-a-b|", clock=clock)
    assert record_signals(source, clock=clock, subscription="-^---!") == [
        MarbleSignal(2.0, "on_next", "a"),
        MarbleSignal(4.0, "on_next", "b"),
    ]
    source.assert_subscriptions("-^---!")
    assert clock.now() == 105.0
    with pytest.raises(ValueError, match="a subscription has"):
        record_signals(source, clock=clock, subscription="-a")


def test_a_recording_checks_the_rules(clock: VirtualClock) -> None:
    class Hasty:
        def subscribe(self, subscriber: Any, /) -> None:
            subscriber.on_next(1)

    with pytest.raises(AssertionError, match=r"§1\.9"):
        record_signals(Hasty(), clock=clock)


# -- comparing


def test_a_flow_is_compared_with_marbles(clock: VirtualClock) -> None:
    source = cold("-1-2-3-4-|", clock=clock)
    assert_marbles(source.flow.filter(lambda n: n % 2 == 0), "---2---4-|", clock=clock)
    assert_marbles(source.flow.pairwise().take(1), "---(p|)", {"p": (1, 2)}, clock=clock)
    assert_marbles(source.flow, "-1-2", clock=clock, subscription="^---!")
    assert_marbles(source.flow.reduce(lambda a, b: a + b), "---------(s|)", {"s": 10}, clock=clock)


def test_errors_are_compared_by_identity_or_class(clock: VirtualClock) -> None:
    error = KeyError("reason")
    source = cold("-a#", clock=clock, error=error)
    for expected in (None, KeyError, error):
        assert_marbles(source, "-a#", clock=clock, error=expected)
    for other in (ValueError, KeyError("reason")):
        with pytest.raises(AssertionError) as raised:
            assert_marbles(source, "-a#", clock=clock, error=other)
        assert raised.value.__cause__ is error


def test_a_difference_is_shown(clock: VirtualClock) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_marbles(cold("-a-x-c|", clock=clock), "-a--b-c|", clock=clock)
    assert str(raised.value).splitlines() == [
        "the marbles differ",
        "  expected  -a--b-c|",
        "  got       -a-x-c|",
        "  at 3.0 s: got on_next('x') too much",
        "  at 4.0 s: expected on_next('b')",
        "  at 5.0 s: got on_next('c') too much",
        "  at 6.0 s: expected on_next('c')",
        "  at 6.0 s: got on_complete() too much",
        "  at 7.0 s: expected on_complete()",
    ]


def test_an_order_that_differs_is_shown(clock: VirtualClock) -> None:
    with pytest.raises(AssertionError, match=r"in the order on_next\('b'\) on_next\('a'\)"):
        assert_marbles(cold("(ba)", clock=clock), "(ab)", clock=clock)


def test_a_difference_between_frames_is_shown_without_a_picture(clock: VirtualClock) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_marbles(cold("-a", clock=clock, frame_s=0.5), "-a", clock=clock)
    assert "got  " not in str(raised.value)
    assert "at 0.5 s: got on_next('a') too much" in str(raised.value)


def test_items_with_a_custom_equality_are_compared_by_identity(clock: VirtualClock) -> None:
    class Odd:
        def __eq__(self, other: object) -> Any:
            return [True]

        __hash__ = None  # type: ignore[assignment]  # as arrays have it

    odd = Odd()
    assert_marbles(cold("-a", {"a": odd}, clock=clock), "-a", {"a": odd}, clock=clock)
    with pytest.raises(AssertionError):
        assert_marbles(cold("-a", {"a": odd}, clock=clock), "-a", {"a": Odd()}, clock=clock)


def test_demand_is_part_of_an_expectation(clock: VirtualClock) -> None:
    assert_marbles(hot("-a-b|", clock=clock, overflow="drop"), "-a--|", clock=clock, request=1)


def test_a_source_of_marbles_behind_a_synchronous_flow(clock: VirtualClock) -> None:
    assert to_marbles(flow.just("a", "b"), clock=clock) == "(ab|)"
    subscriber = TestSubscriber[str]()
    cold("-a|", clock=clock).flow.map(str.upper).subscribe(subscriber)
    clock.run()
    subscriber.assert_result("A")
