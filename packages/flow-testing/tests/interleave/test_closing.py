"""The end of runs of stages, and its notifications, under every schedule within the bound."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_core.protocols import Fusion, Subscriber
from flow_core.sources import Emitter
from flow_testing import Drops, TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = pytest.mark.interleave

Stages = Callable[[flow.Flow[int]], flow.Flow[int]]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=["flow_core", __name__], expect=expect)


def busy(*_: object) -> None:
    """A subscriber that takes its time."""
    step()


class Told:
    """The actions on the end that were run."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def __call__(self, source: flow.Flow[int]) -> flow.Flow[int]:
        return (
            source.do_on_cancel(lambda: self.ran.append("cancel"))
            .do_after_terminate(lambda: self.ran.append("terminate"))
            .finally_action(lambda: self.ran.append("finally"))
        )

    def check(self) -> str:
        """All hear once, and of one kind of end. Returns which."""
        end = "cancel" if "cancel" in self.ran else "terminate"
        assert sorted(self.ran) == sorted([end, "finally"]), self.ran
        return end


def released(subscriber: TestSubscriber[int]) -> None:
    """The subscription refers to no subscriber any more (§3.13), and nothing waits in it."""
    subscription: Any = subscriber.subscription
    assert subscription._downstream is None
    assert subscription._loop is None
    assert subscription._permit, "the permit is lost"
    assert not getattr(subscription, "_inbox", None)


# -- over an iterator


def test_a_cancel_against_the_last_item_is_reported_once() -> None:
    def body() -> Scenario:
        told = Told()
        subscriber = TestSubscriber[int](0, on_item=busy)
        told(flow.range(1).map(abs)).subscribe(subscriber)

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            subscription: Any = subscriber.subscription
            assert subscription._downstream is None
            return subscriber.completed, told.check()

        return Scenario(lambda: subscriber.request(5), subscriber.cancel, outcome=outcome)

    exhaust(body, {(True, "terminate"), (False, "cancel"), (False, "terminate")})


def test_two_cancels_during_a_request_are_reported_once() -> None:
    def body() -> Scenario:
        told = Told()
        subscriber = TestSubscriber[int](0, on_item=busy)
        told(flow.range(1).map(abs)).subscribe(subscriber)
        subscription = subscriber.subscription

        def check() -> None:
            subscriber.assert_rules_kept()
            told.check()

        return Scenario(
            lambda: subscriber.request(2), subscription.cancel, subscription.cancel, check=check
        )

    exhaust(body)


def test_a_cancel_against_a_stage_that_fails_is_reported_once(drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_errors()
        error = ValueError("stage")
        told = Told()

        def fail(_: int) -> int:
            step()
            raise error

        subscriber = TestSubscriber[int](0, on_item=busy)
        told(flow.range(1).map(fail)).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert [subscriber.error, *drops.take_errors()].count(error) <= 1
            told.check()

        return Scenario(lambda: subscriber.request(1), subscriber.cancel, check=check)

    exhaust(body)


def test_a_cancel_while_an_iterator_is_being_subscribed_is_reported_once() -> None:
    def body() -> Scenario:
        told = Told()
        subscriber = TestSubscriber[int](1, on_item=busy)
        source = told(flow.range(2).map(abs))

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert told.check() == "cancel"

        return Scenario(lambda: source.subscribe(subscriber), subscriber.cancel, check=check)

    exhaust(body)


def test_a_bad_request_during_a_request_is_reported_once() -> None:
    def body() -> Scenario:
        told = Told()
        subscriber = TestSubscriber[int](0, on_item=busy)
        told(flow.range(2).map(abs)).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_failure(ValueError, *subscriber.items)
            told.check()

        return Scenario(
            lambda: subscriber.request(1), lambda: subscriber.subscription.request(0), check=check
        )

    exhaust(body)


# -- fused SYNC: one thread polls, another cancels


class Closed:
    """A generator that says whether it has begun and whether it was closed."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def __call__(self) -> Generator[int, None, None]:
        self.log.append("began")
        try:
            for item in (0, 1):
                step()
                yield item
        finally:
            step()
            self.log.append("closed")

    def check(self) -> None:
        assert self.log in ([], ["began", "closed"])


class Elsewhere:
    """A source that the stages after it cannot see."""

    def __init__(self, source: flow.Flow[int]) -> None:
        self._source = source

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self._source.subscribe(subscriber)


@pytest.mark.parametrize("apart", [False, True], ids=["one loop", "two loops"])
@pytest.mark.checklist("F25", "X09")
def test_a_cancel_while_it_is_polled_closes_everything_once(apart: bool, drops: Drops) -> None:
    def body() -> Scenario:
        told, closed = Told(), Closed()
        subscriber = TestSubscriber[int](0, fusion=Fusion.SYNC, on_item=busy)
        source = flow.from_iterable(closed())
        told(flow.Flow(Elsewhere(source)) if apart else source).subscribe(subscriber)
        assert subscriber.fused is Fusion.SYNC

        def check() -> None:
            subscriber.assert_rules_kept()
            told.check()
            closed.check()
            assert not drops.take_errors()

        return Scenario(lambda: subscriber.request(3), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("F25")
def test_two_cancels_while_it_is_polled_close_everything_once(drops: Drops) -> None:
    def body() -> Scenario:
        told, closed = Told(), Closed()
        subscriber = TestSubscriber[int](0, fusion=Fusion.SYNC)
        told(flow.from_iterable(closed())).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_rules_kept()
            told.check()
            closed.check()
            assert not drops.take_errors()

        return Scenario(
            lambda: subscriber.request(1), subscriber.cancel, subscriber.cancel, check=check
        )

    exhaust(body)


# -- behind an upstream that pushes


def one_to_one(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.map(abs)


def one_to_two(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.flat_map_iterable(lambda n: (n, n))


def at_the_end(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.reduce(lambda a, b: a + b)


def handled(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.on_error_return(9)


def ended_early(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.zip_with_iterable((), lambda a, _: a).end_with(8, 9)


def ended_by_an_item(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.take(1).end_with(9)


SHAPES = pytest.mark.parametrize(
    "stages",
    [one_to_one, one_to_two, at_the_end, handled, ended_early, ended_by_an_item],
    ids=lambda stages: stages.__name__,
)


def staged(
    stages: Stages, request: int
) -> tuple[TestPublisher[int], TestSubscriber[int], Told, Callable[[], None]]:
    source, told = TestPublisher[int](), Told()
    subscriber = TestSubscriber[int](request, on_item=busy)
    return source, subscriber, told, lambda: told(stages(flow.Flow(source))).subscribe(subscriber)


def next_if_wanted(source: TestPublisher[int], item: int) -> None:
    if source.outstanding and not source.cancelled:
        source.next(item)


@SHAPES
def test_a_cancel_while_stages_are_being_subscribed_is_reported_once(
    stages: Stages, drops: Drops
) -> None:
    def body() -> Scenario:
        source, subscriber, told, subscribe = staged(stages, 3)

        def check() -> None:
            subscriber.assert_rules_kept()
            source.assert_cancelled()
            told.check()
            released(subscriber)
            assert not drops.take_errors()

        return Scenario(subscribe, subscriber.cancel, check=check)

    exhaust(body)


@SHAPES
def test_a_cancel_against_an_item_is_reported_once(stages: Stages, drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        source, subscriber, told, subscribe = staged(stages, 1)
        subscribe()

        def check() -> None:
            subscriber.assert_rules_kept()
            source.assert_cancelled()
            told.check()
            released(subscriber)

        return Scenario(lambda: next_if_wanted(source, 1), subscriber.cancel, check=check)

    exhaust(body)


@SHAPES
def test_a_cancel_against_the_end_is_reported_once(stages: Stages) -> None:
    def body() -> Scenario:
        source, subscriber, told, subscribe = staged(stages, 1)
        subscribe()

        def check() -> None:
            subscriber.assert_rules_kept()
            told.check()
            released(subscriber)

        return Scenario(source.complete, subscriber.cancel, check=check)

    exhaust(body)


@SHAPES
def test_a_cancel_against_an_error_is_reported_once(stages: Stages, drops: Drops) -> None:
    error = ValueError("upstream")

    def body() -> Scenario:
        drops.take_errors()
        source, subscriber, told, subscribe = staged(stages, 1)
        subscribe()

        def check() -> None:
            subscriber.assert_rules_kept()
            assert [subscriber.error, *drops.take_errors()].count(error) <= 1
            told.check()
            released(subscriber)

        return Scenario(lambda: source.error(error), subscriber.cancel, check=check)

    exhaust(body)


@SHAPES
def test_two_cancels_are_reported_once(stages: Stages) -> None:
    def body() -> Scenario:
        source, subscriber, told, subscribe = staged(stages, 0)
        subscribe()
        subscription = subscriber.subscription

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            told.check()
            released(subscriber)

        return Scenario(subscription.cancel, subscription.cancel, check=check)

    exhaust(body)


@SHAPES
@pytest.mark.checklist("M14")
def test_a_bad_request_against_an_item_is_reported_once(stages: Stages, drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        source, subscriber, told, subscribe = staged(stages, 1)
        subscribe()

        def check() -> None:
            subscriber.assert_rules_kept()
            assert subscriber.terminated
            assert isinstance(subscriber.error, (ValueError, type(None)))
            assert not subscriber.error or "§3.9" in str(subscriber.error)
            source.assert_cancelled()
            told.check()
            released(subscriber)

        return Scenario(
            lambda: next_if_wanted(source, 1),
            lambda: subscriber.subscription.request(0),
            check=check,
        )

    exhaust(body)


@SHAPES
@pytest.mark.checklist("M14")
def test_a_bad_request_against_an_error_is_reported_once(stages: Stages, drops: Drops) -> None:
    error = KeyError("upstream")

    def body() -> Scenario:
        drops.take_errors()
        source, subscriber, told, subscribe = staged(stages, 1)
        subscribe()

        def check() -> None:
            subscriber.assert_rules_kept()
            assert subscriber.terminated
            assert drops.take_errors() in ([], [error])
            assert type(subscriber.error) in (ValueError, KeyError, type(None))
            assert not isinstance(subscriber.error, ValueError) or "§3.9" in str(subscriber.error)
            assert stages in (handled, ended_early) or not subscriber.completed
            told.check()
            released(subscriber)

        return Scenario(
            lambda: source.error(error), lambda: subscriber.subscription.request(0), check=check
        )

    exhaust(body)


# -- stages that handle errors, or end the flow


def test_a_fallback_for_an_error_waits_for_a_request() -> None:
    def body() -> Scenario:
        source, subscriber, told, subscribe = staged(handled, 1)
        subscribe()

        def send() -> None:
            source.next(1)
            source.error(ValueError("upstream"))

        def check() -> None:
            subscriber.assert_result(1, 9)
            assert told.check() == "terminate"
            released(subscriber)

        return Scenario(send, lambda: subscriber.request(1), check=check)

    exhaust(body)


def test_a_fallback_for_an_error_against_a_cancel_and_a_request(drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_errors()
        source, subscriber, told, subscribe = staged(handled, 0)
        subscribe()
        error = ValueError("upstream")

        def outcome() -> Hashable:
            subscriber.assert_rules_kept()
            assert drops.take_errors() in ([], [error])
            told.check()
            released(subscriber)
            return tuple(subscriber.items)

        def request_and_cancel() -> None:
            subscriber.request(1)
            subscriber.cancel()

        return Scenario(lambda: source.error(error), request_and_cancel, outcome=outcome)

    exhaust(body, {(), (9,)})


def test_the_rest_of_an_early_end_against_two_requests() -> None:
    def body() -> Scenario:
        source, subscriber, told, subscribe = staged(ended_early, 0)
        subscribe()

        def check() -> None:
            subscriber.assert_result(8, 9)
            source.assert_cancelled()
            assert told.check() == "terminate"
            released(subscriber)

        return Scenario(lambda: subscriber.request(1), lambda: subscriber.request(1), check=check)

    exhaust(body)


@pytest.mark.parametrize("how", ["complete", "error"])
def test_an_early_end_while_it_is_being_subscribed_against_a_request_and_its_upstream(
    how: str, drops: Drops
) -> None:
    error = ValueError("upstream")

    def body() -> Scenario:
        drops.take_errors()
        source, subscriber, told, subscribe = staged(ended_early, 0)

        def subscribe_and_end() -> None:
            subscribe()
            if how == "complete":
                source.complete()
            else:
                source.error(error)

        def request() -> None:
            subscriber.request(2)

        def check() -> None:
            subscriber.assert_result(8, 9)
            assert drops.take_errors() in ([], [error])
            assert told.check() == "terminate"
            released(subscriber)

        return Scenario(subscribe_and_end, request, check=check)

    exhaust(body)


def test_an_item_that_ends_the_flow_against_the_request_for_the_rest() -> None:
    def body() -> Scenario:
        source, subscriber, told, subscribe = staged(ended_by_an_item, 1)
        subscribe()

        def send() -> None:
            source.next(1)
            next_if_wanted(source, 2)
            source.complete()

        def check() -> None:
            subscriber.assert_result(1, 9)
            assert told.check() == "terminate"
            released(subscriber)

        return Scenario(send, lambda: subscriber.request(1), check=check)

    exhaust(body)


# -- stages over a queue that is polled


def some(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.filter(lambda n: n > 0)


POLLED = pytest.mark.parametrize("stages", [one_to_one, some], ids=lambda stages: stages.__name__)


def polled(stages: Stages, request: int) -> tuple[Emitter[int], TestSubscriber[int]]:
    made: list[Emitter[int]] = []
    subscriber = TestSubscriber[int](request, fusion=Fusion.ASYNC, on_item=busy)
    stages(flow.create(made.append)).subscribe(subscriber)
    assert subscriber.fused is Fusion.ASYNC
    return made[0], subscriber


@POLLED
@pytest.mark.checklist("F26", "F33")
def test_polled_an_item_and_the_end_against_a_request(stages: Stages) -> None:
    def body() -> Scenario:
        emitter, subscriber = polled(stages, 0)

        def send() -> None:
            emitter.next(1)
            emitter.complete()

        return Scenario(
            send, lambda: subscriber.request(1), check=lambda: subscriber.assert_result(1)
        )

    exhaust(body)


@pytest.mark.checklist("F26", "F40")
def test_polled_what_a_filter_drops_is_asked_for_again() -> None:
    def body() -> Scenario:
        emitter, subscriber = polled(some, 1)
        return Scenario(
            lambda: emitter.next(0),
            lambda: emitter.next(1),
            check=lambda: subscriber.assert_items(1).assert_not_terminated(),
        )

    exhaust(body)


@POLLED
@pytest.mark.checklist("F26")
def test_polled_a_cancel_against_an_item(stages: Stages, drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = polled(stages, 1)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            assert len([*subscriber.items, *drops.items]) <= 1
            assert emitter.cancelled
            released(subscriber)

        return Scenario(lambda: emitter.next(1), subscriber.cancel, check=check)

    exhaust(body)


@POLLED
@pytest.mark.checklist("F26")
def test_polled_a_cancel_after_a_request_against_the_end(stages: Stages, drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        emitter, subscriber = polled(stages, 0)
        emitter.next(1)

        def request_and_cancel() -> None:
            subscriber.request(1)
            subscriber.cancel()

        def check() -> None:
            subscriber.assert_rules_kept()
            released(subscriber)

        return Scenario(request_and_cancel, emitter.complete, check=check)

    exhaust(body)


@POLLED
@pytest.mark.checklist("F26")
def test_polled_an_error_comes_after_the_items_before_it(stages: Stages) -> None:
    error = ValueError("upstream")

    def body() -> Scenario:
        emitter, subscriber = polled(stages, 0)
        emitter.next(1)
        return Scenario(
            lambda: emitter.error(error),
            lambda: subscriber.request(2),
            check=lambda: subscriber.assert_failure(error, 1),
        )

    exhaust(body)
