"""The end of a flow, heard of once: on_close, and the stages that are made of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import (
    CoreSubscriber,
    Flow,
    Fusion,
    QueueSubscription,
    Stage,
    Subscription,
    Template,
    structure,
)
from flow_testing import Drops, TestPublisher, TestSubscriber, assert_result, race

Make = Callable[[list[str]], Flow[Any]]


def closing(name: str, made: Flow[Any], log: list[str]) -> Flow[Any]:
    """`made`, with its end written down: `name` once it has ended."""
    return made.finally_action(lambda: log.append(name))


def long(made: Flow[Any], count: int = 130) -> Flow[Any]:
    """More stages than one loop holds."""
    for _ in range(count):
        made = made.filter(lambda n: n is not None)
    return made


def numbers() -> Iterator[int]:
    yield from range(5)


SHAPES: dict[str, Make] = {
    "plain": lambda log: closing("closed", flow.range(5), log).map(str),
    "a generator": lambda log: closing("closed", flow.from_iterable(numbers()), log).map(str),
    "started": lambda log: closing("closed", flow.range(5).start_with(7), log),
    "a rest": lambda log: closing("closed", flow.range(5), log).buffer_with_count(2),
    "absorbing": lambda log: closing("closed", flow.range(5), log).to_list(),
    "handled": lambda log: closing("closed", flow.range(5), log).on_error_complete(KeyError),
    "hidden": lambda log: closing("closed", flow.range(5).hide(), log).map(str),
    "a rest after hidden": lambda log: closing("closed", flow.range(5).hide(), log).end_with(9),
    "absorbing after hidden": lambda log: closing("closed", flow.range(5).hide(), log).to_list(),
    "before hidden": lambda log: closing("closed", flow.range(5), log).hide().map(str),
    "first of several loops": lambda log: long(closing("closed", flow.range(5), log)),
    "last of several loops": lambda log: closing("closed", long(flow.range(5)), log),
    "first of several loops after hidden": lambda log: long(
        closing("closed", flow.range(5).hide(), log)
    ),
}
each_shape = pytest.mark.parametrize("shape", SHAPES)
FUSIONS = (Fusion.NONE, Fusion.SYNC)
each_fusion = pytest.mark.parametrize("fusion", FUSIONS, ids=["plain", "fused"])


class InOnSubscribe(CoreSubscriber[Any]):
    """Does something within on_subscribe, and writes the rest down."""

    def __init__(self, act: Callable[[Subscription], object], fusion: Fusion, log: list[str]):
        self._act = act
        self._fusion = fusion
        self._log = log

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._fusion and isinstance(subscription, QueueSubscription):
            subscription.request_fusion(self._fusion)
        self._act(subscription)

    def on_next(self, item: Any, /) -> None:
        self._log.append("next")

    def on_error(self, error: BaseException, /) -> None:
        self._log.append("error")

    def on_complete(self) -> None:
        self._log.append("complete")


# -- once, however it ends


@each_fusion
@each_shape
def test_completion_closes_once(shape: str, fusion: Fusion) -> None:
    log: list[str] = []
    subscriber = TestSubscriber[Any](fusion=fusion)
    SHAPES[shape](log).subscribe(subscriber)
    assert subscriber.completed
    assert log == ["closed"]
    subscriber.cancel()
    assert log == ["closed"]


@each_shape
def test_iterating_to_the_end_closes_once(shape: str) -> None:
    log: list[str] = []
    for _ in SHAPES[shape](log):
        assert log in ([], ["closed"])
    assert log == ["closed"]


@each_shape
def test_leaving_an_iteration_closes_once(shape: str) -> None:
    log: list[str] = []
    items = iter(SHAPES[shape](log))
    next(items)
    close = getattr(items, "close", None)
    assert close is not None
    close()
    assert log == ["closed"]
    close()
    assert log == ["closed"]


def test_an_exception_in_the_body_of_an_iteration_closes_once() -> None:
    log: list[str] = []
    with pytest.raises(KeyError):
        for _ in SHAPES["plain"](log):
            raise KeyError
    assert log == ["closed"]


def test_an_iteration_that_never_began_has_nothing_to_close() -> None:
    log: list[str] = []
    items = iter(SHAPES["plain"](log))
    del items
    assert log == []


@each_fusion
@each_shape
def test_an_error_of_the_source_closes_once(shape: str, fusion: Fusion) -> None:
    log: list[str] = []

    def failing() -> Iterator[int]:
        yield 0
        raise ZeroDivisionError

    made = structure.moved(SHAPES[shape](log), lambda _: flow.from_iterable(failing()))
    subscriber = TestSubscriber[Any](fusion=fusion)
    made.subscribe(subscriber)
    assert isinstance(subscriber.error, ZeroDivisionError)
    assert log == ["closed"]


@each_fusion
@each_shape
def test_an_error_of_a_later_stage_closes_once(shape: str, fusion: Fusion) -> None:
    log: list[str] = []

    def fail(_: object) -> object:
        raise ZeroDivisionError

    subscriber = TestSubscriber[Any](fusion=fusion)
    SHAPES[shape](log).map(fail).subscribe(subscriber)
    assert isinstance(subscriber.error, ZeroDivisionError)
    assert log == ["closed"]


def test_a_source_that_fails_when_it_is_asked_whether_it_is_empty_closes_once() -> None:
    """A subscriber that is fused may ask before its first poll."""

    def failing() -> Iterator[int]:
        raise ZeroDivisionError
        yield 1

    log: list[str] = []
    subscriber = TestSubscriber[int](fusion=Fusion.SYNC)
    closing("closed", structure.moved(Flow(flow.from_iterable(failing())), Flow), log).subscribe(
        subscriber
    )
    assert isinstance(subscriber.error, ZeroDivisionError)
    assert log == ["closed"]


@pytest.mark.checklist("X09")
@each_fusion
@each_shape
def test_cancelling_in_on_subscribe_closes_once(shape: str, fusion: Fusion) -> None:
    log: list[str] = []
    subscriber = InOnSubscribe(lambda subscription: subscription.cancel(), fusion, log)
    SHAPES[shape](log).subscribe(subscriber)
    assert log == ["closed"]


@each_fusion
@each_shape
def test_a_bad_request_in_on_subscribe_fails_and_closes_once(shape: str, fusion: Fusion) -> None:
    log: list[str] = []
    subscriber = InOnSubscribe(lambda subscription: subscription.request(-1), fusion, log)
    SHAPES[shape](log).subscribe(subscriber)
    assert sorted(log) == ["closed", "error"]
    # A boundary cancels what is above it first.
    assert "before" in shape or "after" in shape or log == ["error", "closed"]


@each_shape
def test_a_bad_request_later_closes_once(shape: str) -> None:
    log: list[str] = []
    subscriber = TestSubscriber[Any](1)
    SHAPES[shape](log).subscribe(subscriber)
    subscriber.request(0)
    assert subscriber.terminated
    assert log == ["closed"]


@each_fusion
@each_shape
def test_a_subscriber_that_raises_in_on_subscribe_closes_once(shape: str, fusion: Fusion) -> None:
    log: list[str] = []

    def fail(_: Subscription) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        SHAPES[shape](log).subscribe(InOnSubscribe(fail, fusion, log))
    assert log == ["closed"]


@each_shape
def test_cancelling_before_the_first_request_closes_once(shape: str) -> None:
    log: list[str] = []
    subscriber = TestSubscriber[Any](0)
    SHAPES[shape](log).subscribe(subscriber)
    assert log == []
    subscriber.cancel()
    assert log == ["closed"]
    subscriber.cancel()
    assert log == ["closed"]
    subscriber.assert_silent_after_cancel()


@each_fusion
@each_shape
def test_cancelling_in_on_next_closes_once(shape: str, fusion: Fusion) -> None:
    log: list[str] = []
    subscriber = TestSubscriber[Any](fusion=fusion, on_item=lambda self, _: self.cancel())
    SHAPES[shape](log).subscribe(subscriber)
    assert len(subscriber.items) == 1
    assert log == ["closed"]


@each_shape
def test_a_subscriber_that_raises_in_on_next_closes_once(shape: str) -> None:
    log: list[str] = []

    def fail(_: object) -> None:
        raise ZeroDivisionError

    errors: list[BaseException] = []
    SHAPES[shape](log).subscribe(fail, errors.append)
    assert [type(error) for error in errors] == [ZeroDivisionError]
    assert log == ["closed"]


@each_shape
def test_fused_and_cancelled_between_polls_closes_once(shape: str) -> None:
    for polled in (0, 1):
        log: list[str] = []
        subscriber = TestSubscriber[Any](0, fusion=Fusion.SYNC)
        SHAPES[shape](log).subscribe(subscriber)
        if polled:
            subscriber.request(polled)
        subscriber.cancel()
        assert log == ["closed"], polled


@each_fusion
def test_cancelling_within_a_function_of_an_earlier_loop_closes_once(fusion: Fusion) -> None:
    log: list[str] = []
    subscriber = TestSubscriber[Any](fusion=fusion)

    def cancel(n: int) -> int:
        if n == 2:
            subscriber.cancel()
        return n

    made = long(flow.range(5).do_on_cancel(lambda: log.append("above")).map(cancel))
    made = made.do_on_complete(lambda: log.append("completed"))
    made.do_on_cancel(lambda: log.append("below")).subscribe(subscriber)
    assert log == ["below", "above"]


def test_cancelling_within_the_state_of_a_stage_closes_what_is_above() -> None:
    for upstream in (flow.range(3), flow.range(3).hide(), Flow(TestPublisher[int]())):
        log: list[str] = []
        subscriber = TestSubscriber[Any]()

        def supplier(subscriber: TestSubscriber[Any] = subscriber) -> list[int]:
            subscriber.cancel()
            return []

        closing("closed", upstream, log).collect(supplier, list.append).subscribe(subscriber)
        assert log == ["closed"]


@each_shape
def test_a_race_of_cancels_with_a_running_flow_closes_once(shape: str) -> None:
    for _ in range(20):
        log: list[str] = []
        subscriber = TestSubscriber[Any](0)
        SHAPES[shape](log).subscribe(subscriber)
        race(lambda s=subscriber: s.request(9), subscriber.cancel, subscriber.cancel)
        assert log == ["closed"]
        subscriber.assert_rules_kept()


@each_shape
def test_a_race_of_cancel_with_polls_closes_once(shape: str) -> None:
    for _ in range(20):
        log: list[str] = []
        subscriber = TestSubscriber[Any](0, fusion=Fusion.SYNC)
        SHAPES[shape](log).subscribe(subscriber)
        race(lambda s=subscriber: s.request(9), subscriber.cancel)
        assert log == ["closed"]


def test_a_publisher_that_completes_while_it_is_cancelled_closes_once() -> None:
    for _ in range(50):
        log: list[str] = []
        publisher = TestPublisher[int]()
        subscriber = TestSubscriber[Any]()
        closing("closed", Flow(publisher), log).end_with(9).subscribe(subscriber)
        race(publisher.complete, subscriber.cancel)
        assert log == ["closed"]


@each_fusion
def test_a_stage_that_stops_before_the_first_item_closes_those_above(fusion: Fusion) -> None:
    for behind in (lambda f: f, long):
        for hidden in (False, True):
            log: list[str] = []
            source = flow.range(5).hide() if hidden else flow.range(5)
            made = source.finally_action(lambda log=log: log.append("closed"))
            made = made.do_on_cancel(lambda log=log: log.append("cancelled"))
            made = behind(made).zip_with_iterable([])
            subscriber = TestSubscriber[Any](fusion=fusion)
            made.subscribe(subscriber)
            subscriber.assert_result()
            assert log == ["cancelled", "closed"]
            log.clear()
            assert list(made) == []
            assert log == ["cancelled", "closed"]


# -- in which order


@each_fusion
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("between", [lambda f: f, long], ids=["one loop", "several loops"])
def test_closing_goes_from_downstream_to_upstream(
    between: Callable[[Flow[Any]], Flow[Any]], hidden: bool, fusion: Fusion
) -> None:
    log: list[str] = []
    source = flow.range(2).hide() if hidden else flow.range(2)
    made = closing("1", source, log)
    made = closing("3", closing("2", between(made), log), log)
    made.subscribe(TestSubscriber[Any](fusion=fusion))
    assert log == ["3", "2", "1"]
    log.clear()
    assert list(made) == [0, 1]
    # Behind hide() an iteration has a subscriber of its own, which was told before its stages are.
    assert sorted(log) == ["1", "2", "3"]


@each_shape
def test_the_subscriber_is_notified_before_the_stages(shape: str) -> None:
    log: list[str] = []
    SHAPES[shape](log).subscribe(lambda _: None, on_complete=lambda: log.append("told"))
    assert log == ["told", "closed"]


def test_a_generator_is_closed_before_the_stages_are_notified() -> None:
    log: list[str] = []

    def items() -> Iterator[int]:
        try:
            yield from range(9)
        finally:
            log.append("source")

    subscriber = TestSubscriber[int](1)
    closing("stage", flow.from_iterable(items()), log).subscribe(subscriber)
    subscriber.cancel()
    assert log == ["source", "stage"]


@each_fusion
def test_errors_of_closing_are_dropped_and_the_rest_is_closed(drops: Drops, fusion: Fusion) -> None:
    log: list[str] = []
    error = ZeroDivisionError()

    def fail() -> None:
        raise error

    made = closing("above", flow.range(2), log).finally_action(fail)
    made = closing("below", made, log)
    subscriber = TestSubscriber[int](fusion=fusion)
    made.subscribe(subscriber)
    subscriber.assert_result(0, 1)
    assert log == ["below", "above"]
    assert drops.take_errors() == [error]
    assert list(made) == [0, 1]
    assert drops.take_errors() == [error]


@pytest.mark.checklist("X10")
def test_a_fatal_error_of_closing_propagates() -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(flow.range(2).finally_action(fail))
    with pytest.raises(KeyboardInterrupt):
        flow.range(2).finally_action(fail).subscribe(TestSubscriber[int]())


# -- on_close of one's own


def test_on_close_may_have_local_names() -> None:
    log: list[object] = []
    for text in (
        "for each in actions:\n    each(1)",
        "_ = [each(1) for each in actions]",
        "one = 1\nfor each in actions:\n    each(one)",
        "n += 1\nactions[0](n)",
    ):
        log.clear()
        own = Template("own", params=("actions",), state="n = 0", on_close=text)
        made = flow.range(2).pipe(Stage(own, [log.append]))
        assert list(made) == [0, 1]
        assert log == [1]
        made.subscribe(TestSubscriber[int]())
        assert log == [1, 1]


@pytest.mark.parametrize("name", ["close", "closer", "closers", "gate", "it", "x_", "stop", "n"])
def test_a_param_of_any_name_can_be_called_at_the_end(name: str) -> None:
    log: list[object] = []
    own = Template("own", params=(name,), on_close=f"{name}(1)")
    assert_result(lambda: flow.range(2).pipe(Stage(own, log.append)), [0, 1])
    assert set(log) == {1}


def test_on_close_sees_the_state_as_it_is_at_the_end() -> None:
    seen: list[int] = []
    counted = Template(
        "counted", params=("tell",), state="n = 0", on_item="n += 1\nEMIT", on_close="tell(n)"
    )
    made = flow.range(9).pipe(Stage(counted, seen.append))
    assert list(made.take(4)) == [0, 1, 2, 3]
    made.subscribe(TestSubscriber[int](fusion=Fusion.SYNC))
    assert seen == [4, 9]


# -- do_on_cancel, do_after_terminate, finally_action


def told(made: Flow[Any], log: list[str]) -> Flow[Any]:
    return (
        made.do_on_cancel(lambda: log.append("cancelled"))
        .do_after_terminate(lambda: log.append("terminated"))
        .finally_action(lambda: log.append("over"))
    )


def fail(_: object) -> Any:
    raise ZeroDivisionError


@pytest.mark.parametrize("hidden", [False, True])
@each_fusion
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda log, f: told(f, log), ["over", "terminated"]),
        (lambda log, f: told(f, log).take(2), ["over", "cancelled"]),
        (lambda log, f: told(f.take(2), log), ["over", "terminated"]),
        (lambda log, f: told(f, log).first_or_error(), ["over", "cancelled"]),
        (lambda log, f: told(f.first_or_error(), log), ["over", "terminated"]),
        (lambda log, f: told(f, log).map(fail), ["over", "cancelled"]),
        (lambda log, f: told(f.map(fail), log), ["over", "terminated"]),
        (lambda log, f: told(f, log).map(fail).on_error_complete(), ["over", "cancelled"]),
        (lambda log, f: told(f.map(fail), log).on_error_complete(), ["over", "terminated"]),
        (lambda log, f: told(f.map(fail).on_error_return(1), log), ["over", "terminated"]),
        (lambda log, f: told(f, log).some(bool), ["over", "cancelled"]),
        (lambda log, f: told(f, log).all(bool).end_with(1), ["over", "cancelled"]),
    ],
)
def test_a_cancellation_from_below_is_distinguished_from_a_terminal(
    make: Callable[[list[str], Flow[int]], Flow[Any]],
    expected: list[str],
    hidden: bool,
    fusion: Fusion,
) -> None:
    log: list[str] = []
    made = make(log, flow.range(5).hide() if hidden else flow.range(5))
    subscriber = TestSubscriber[Any](fusion=fusion)
    made.subscribe(subscriber)
    assert subscriber.terminated
    assert log == expected
    log.clear()
    try:
        list(made)
    except ZeroDivisionError:
        pass
    assert log == expected


def test_do_after_next_follows_an_item_that_was_passed_on_even_the_last_one() -> None:
    """`take` ends the flow with it."""
    for end in (
        lambda f: f.take(2),
        lambda f: f.map(lambda n: n).take_until(lambda n: n == 1),
        lambda f: f.filter(lambda n: True).element_at(1),
        lambda f: f.flat_map_iterable(lambda n: [n]).take(2),
    ):
        log: list[int] = []
        made = end(flow.range(5).do_after_next(log.append))
        list(made)
        assert log == [0, 1]
        made.subscribe(TestSubscriber[int]())
        assert log == [0, 1, 0, 1]


def test_do_after_next_comes_after_the_subscriber() -> None:
    log: list[object] = []
    flow.range(2).do_after_next(lambda n: log.append(("after", n))).subscribe(log.append)
    assert log == [0, ("after", 0), 1, ("after", 1)]


def test_actions_at_the_end_come_before_the_subscriber_and_after_the_items() -> None:
    log: list[object] = []
    made = flow.range(1).do_action(
        lambda n: log.append(("next", n)),
        log.append,
        lambda: log.append("complete"),
        on_subscribe=lambda: log.append("subscribe"),
        on_cancel=lambda: log.append("cancel"),
        on_close=lambda: log.append("close"),
    )
    made.do_on_terminate(lambda: log.append("terminate")).subscribe(
        lambda n: log.append(n), on_complete=lambda: log.append("told")
    )
    assert log == ["subscribe", ("next", 0), 0, "complete", "terminate", "told", "close"]


def test_an_action_that_fails_at_completion_fails_the_flow() -> None:
    for name in ("do_on_complete", "do_on_terminate"):
        error = ZeroDivisionError()

        def fail(error: Exception = error) -> None:
            raise error

        assert_result(
            lambda name=name, fail=fail: getattr(flow.range(2), name)(fail), [0, 1], error
        )


def test_log_writes_each_signal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "flow")
    list(flow.range(2).log("a").take(1))
    list(flow.range(1).log("b"))
    list(flow.range(1).map(fail).log("c").on_error_complete())
    assert [record.getMessage() for record in caplog.records] == [
        *("a: on_subscribe()", "a: on_next(0)", "a: cancel()"),
        *("b: on_subscribe()", "b: on_next(0)", "b: on_complete()"),
        *("c: on_subscribe()", "c: on_error(ZeroDivisionError())"),
    ]
    caplog.clear()
    flow.range(1).log(level=logging.DEBUG).subscribe(TestSubscriber[int]())
    assert caplog.records == []
