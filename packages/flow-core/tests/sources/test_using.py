"""`using`: a resource that lives as long as its flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow, Fusion
from flow_testing import Drops, TestSubscriber, assert_result, race


class FailureError(Exception):
    pass


class Resource:
    """A context manager that notes what is done to it."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def __enter__(self) -> list[int]:
        self.log.append("open")
        return [1, 2, 3]

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.log.append(error or "close")
        return True


def sync(items: list[int]) -> Flow[int]:
    return flow.from_iterable(items)


def hidden(items: list[int]) -> Flow[int]:
    return flow.from_iterable(items).hide()


eager_or_not = pytest.mark.parametrize("eager", [True, False])
each_kind = pytest.mark.parametrize("use", [sync, hidden])


@eager_or_not
@each_kind
def test_using_gives_the_items_of_the_flow_of_the_resource(
    use: Callable[[list[int]], Flow[int]], eager: bool
) -> None:
    log: list[Any] = []
    assert_result(
        lambda: flow.using(lambda: Resource(log), use, eager=eager),
        [1, 2, 3],
    )
    assert_result(
        lambda: flow.using(lambda: Resource(log), use, eager=eager).map(str).take(2),
        ["1", "2"],
        # A stage that stops in a fused loop of its own does not cancel the upstream that it polls.
    )
    assert log.count("open") == log.count("close") > 20
    assert_result(lambda: flow.using(lambda: [4], use, list.clear, eager=eager), [4])


@eager_or_not
@each_kind
def test_the_resource_is_released_around_the_terminal(
    use: Callable[[list[int]], Flow[int]], eager: bool
) -> None:
    log: list[Any] = []
    made = flow.using(lambda: Resource(log), use, eager=eager)
    assert log == []
    made.subscribe(log.append, None, lambda: log.append("complete"))
    end = ["close", "complete"] if eager else ["complete", "close"]
    assert log == ["open", 1, 2, 3, *end]


@eager_or_not
@each_kind
def test_the_resource_is_released_for_an_error(
    use: Callable[[list[int]], Flow[int]], eager: bool
) -> None:
    error = FailureError()
    log: list[Any] = []

    def fail(n: int) -> int:
        raise error

    made = flow.using(lambda: Resource(log), lambda items: use(items).map(fail), eager=eager)
    made.subscribe(log.append, lambda error: log.append(f"failed: {type(error).__name__}"))
    # The context manager is told of the error; it cannot suppress it.
    end = [error, "failed: FailureError"] if eager else ["failed: FailureError", error]
    assert log == ["open", *end]
    assert_result(lambda: made, [], error)


@pytest.mark.checklist("X09")
@eager_or_not
@each_kind
@pytest.mark.parametrize("fusion", [Fusion.NONE, Fusion.SYNC])
@pytest.mark.parametrize("requested", [0, 2])
def test_the_resource_is_released_on_cancel(
    use: Callable[[list[int]], Flow[int]], eager: bool, fusion: Fusion, requested: int
) -> None:
    log: list[Any] = []
    subscriber = TestSubscriber[int](requested, fusion=fusion)
    flow.using(lambda: Resource(log), use, eager=eager).subscribe(subscriber)
    assert log == ["open"]
    subscriber.cancel()
    subscriber.cancel()
    assert log == ["open", "close"]
    subscriber.assert_items(*[1, 2][:requested]).assert_silent_after_cancel()


@eager_or_not
@each_kind
def test_a_subscriber_that_cancels_at_once_releases_it(
    use: Callable[[list[int]], Flow[int]], eager: bool
) -> None:
    log: list[Any] = []
    subscriber = TestSubscriber[int]()
    subscriber.cancel()
    flow.using(lambda: Resource(log), use, eager=eager).subscribe(subscriber)
    assert log in (["open", "close"], [])


@eager_or_not
@each_kind
def test_an_iteration_that_is_left_releases_it(
    use: Callable[[list[int]], Flow[int]], eager: bool
) -> None:
    log: list[Any] = []
    made = flow.using(lambda: Resource(log), use, eager=eager)
    assert made.first() == 1
    assert log == ["open", "close"]
    for item in made:
        assert item == 1
        break
    assert log == ["open", "close"] * 2


def test_each_subscriber_has_a_separate_resource() -> None:
    made: list[list[int]] = []
    closed: list[list[int]] = []

    def resource() -> list[int]:
        made.append([len(made)])
        return made[-1]

    using = flow.using(resource, sync, closed.append)
    assert list(using) == [0]
    assert list(using) == [1]
    assert closed == made


@eager_or_not
def test_an_end_that_races_with_a_cancel_releases_it_once(eager: bool) -> None:
    for _ in range(50):
        log: list[Any] = []
        subscriber = TestSubscriber[int](0)
        flow.using(lambda log=log: Resource(log), sync, eager=eager).subscribe(subscriber)
        race(lambda subscriber=subscriber: subscriber.request(UNBOUNDED), subscriber.cancel)
        assert log == ["open", "close"]


# -- what fails


def test_an_error_of_the_resource_fails_the_flow() -> None:
    error = FailureError()

    def fail() -> list[int]:
        raise error

    class Broken:
        def __enter__(self) -> list[int]:
            raise error

        def __exit__(self, *_: object) -> None:
            raise AssertionError("it was never entered")

    assert_result(lambda: flow.using(fail, sync, print), [], error)
    assert_result(lambda: flow.using(Broken, sync), [], error)


def test_an_error_of_use_fails_the_flow_and_releases_the_resource() -> None:
    error = FailureError()
    log: list[Any] = []

    def fail(items: list[int]) -> Flow[int]:
        raise error

    made = flow.using(lambda: Resource(log), fail)
    with pytest.raises(FailureError):
        list(made)
    assert log == ["open", error]
    assert_result(lambda: made, [], error)


def test_errors_of_use_and_of_the_release_come_in_one_group() -> None:
    first, second = FailureError("use"), FailureError("release")

    def fail(items: list[int]) -> Flow[int]:
        raise first

    def release(items: list[int]) -> None:
        raise second

    with pytest.raises(ExceptionGroup) as caught:
        list(flow.using(lambda: [1], fail, release))
    assert caught.value.exceptions == (first, second)


@each_kind
def test_an_error_of_an_eager_release_fails_the_flow(
    use: Callable[[list[int]], Flow[int]],
) -> None:
    error = FailureError()
    calls: list[list[int]] = []

    def release(items: list[int]) -> None:
        calls.append(items)
        raise error

    subscriber = TestSubscriber[int]()
    flow.using(lambda: [1], use, release).subscribe(subscriber)
    subscriber.assert_failure(error, 1)
    assert calls == [[1]]


@each_kind
def test_an_error_of_a_late_release_goes_to_the_hook(
    use: Callable[[list[int]], Flow[int]], drops: Drops
) -> None:
    error = FailureError()

    def release(items: list[int]) -> None:
        raise error

    subscriber = TestSubscriber[int]()
    flow.using(lambda: [1], use, release, eager=False).subscribe(subscriber)
    subscriber.assert_result(1)
    assert drops.take_errors() == [error]


def test_an_error_of_the_flow_and_one_of_the_release_are_both_told() -> None:
    first, second = FailureError("flow"), FailureError("release")

    def release(items: list[int]) -> None:
        raise second

    subscriber = TestSubscriber[int]()
    flow.using(lambda: [1], lambda _: flow.error(first), release).subscribe(subscriber)
    subscriber.assert_failure(ExceptionGroup)
    assert isinstance(subscriber.error, ExceptionGroup)
    assert subscriber.error.exceptions == (first, second)


def test_a_use_that_does_not_make_a_flow_is_named_by_the_error() -> None:
    log: list[Any] = []
    made = flow.using(lambda: Resource(log), len)  # type: ignore[arg-type,return-value,var-annotated]  # the mistake
    with pytest.raises(TypeError, match=r"len gave 3, not a Flow"):
        list(made)
    assert len(log) == 2


def test_a_resource_that_cannot_be_released_is_refused() -> None:
    made: Flow[int] = flow.using(lambda: [1], sync)  # type: ignore[call-overload]  # the mistake
    with pytest.raises(TypeError, match="is not a context manager"):
        list(made)


def test_the_context_manager_may_be_a_generator() -> None:
    events: list[Any] = []

    @contextmanager
    def connection() -> Iterator[list[int]]:
        try:
            yield [1, 2]
        except FailureError as error:
            events.append(error)
            raise
        finally:
            events.append("closed")

    assert list(flow.using(connection, sync)) == [1, 2]
    assert events == ["closed"]
    error = FailureError()
    assert_result(lambda: flow.using(connection, lambda _: flow.error(error)), [], error)
    assert events[-2:] == [error, "closed"]


@pytest.mark.checklist("F23", "F39")
@pytest.mark.parametrize("mode", [Fusion(mask) for mask in range(8)])
def test_using_grants_what_its_flow_grants_but_not_across_threads(mode: Fusion) -> None:
    subscriber = TestSubscriber[int](0, fusion=mode)
    flow.using(lambda: [1], sync, list.clear).subscribe(subscriber)
    across = mode & Fusion.THREAD_BOUNDARY
    assert subscriber.fused == (Fusion.NONE if across else mode & Fusion.SYNC)
    subscriber.cancel()
