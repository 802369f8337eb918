"""Demand, cancellation, errors and arguments of the operators that run one flow after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.structure import source_of
from flow_ops import (
    Backoff,
    and_then,
    concat,
    concat_with,
    merge,
    on_error_resume,
    repeat,
    repeat_until,
    repeat_when,
    retry,
    retry_when,
    start_with_flows,
    switch_if_empty,
)
from flow_testing import (
    BAD_SOURCES,
    BadSource,
    ConditionalTestSubscriber,
    Payloads,
    TestPublisher,
    TestSubscriber,
    assert_released,
    check_bad_source,
)


def subscribed(made: Flow[Any], request: int = flow.UNBOUNDED) -> TestSubscriber[Any]:
    subscriber: TestSubscriber[Any] = TestSubscriber(request)
    made.subscribe(subscriber)
    return subscriber


ERROR = ValueError("failed")

# Each runs a second flow where the first has ended, so or so.
SECOND: dict[str, tuple[Callable[[Flow[Any], Flow[Any]], Flow[Any]], BaseException | None]] = {
    "concat": (lambda first, second: concat(first, second), None),
    "concat_with": (lambda first, second: first.pipe(concat_with(second)), None),
    "start_with_flows": (lambda first, second: second.pipe(start_with_flows(first)), None),
    "on_error_resume": (lambda first, second: first.pipe(on_error_resume(second)), ERROR),
    "on_error_resume, by function": (
        lambda first, second: first.pipe(on_error_resume(lambda _: second)),
        ERROR,
    ),
}
each_second = pytest.mark.parametrize("form", SECOND)


class Parts:
    """A publisher that the test plays, one for each subscription."""

    def __init__(self) -> None:
        self.runs: list[TestPublisher[int]] = []

    def next_run(self) -> Flow[int]:
        self.runs.append(TestPublisher[int]())
        return Flow(self.runs[-1])

    @property
    def flow(self) -> Flow[int]:
        return flow.defer(self.next_run)

    @property
    def last(self) -> TestPublisher[int]:
        return self.runs[-1]


AGAIN: dict[str, tuple[Callable[[Flow[int]], Flow[int]], BaseException | None]] = {
    "repeat": (lambda first: first.pipe(repeat(2)), None),
    "repeat_until": (lambda first: first.pipe(repeat_until(lambda: False)), None),
    "repeat_when": (lambda first: first.pipe(repeat_when(lambda runs: runs)), None),
    "retry": (lambda first: first.pipe(retry()), ERROR),
    "retry, by function": (lambda first: first.pipe(retry(when=lambda _: True)), ERROR),
    "retry_when": (lambda first: first.pipe(retry_when(lambda errors: errors)), ERROR),
}
each_again = pytest.mark.parametrize("form", AGAIN)


def end(source: TestPublisher[Any], error: BaseException | None) -> None:
    if error is None:
        source.complete()
    else:
        source.error(error)


# -- demand


@pytest.mark.checklist("P04", "P29")
@each_second
def test_the_second_flow_gets_what_the_first_has_left(form: str) -> None:
    make, error = SECOND[form]
    first, second = TestPublisher[int](), TestPublisher[int]()
    subscriber = subscribed(make(Flow(first), Flow(second)), 5)
    first.assert_requests(5).next(1, 2)
    second.assert_not_subscribed()
    end(first, error)
    second.assert_requests(3)
    subscriber.request(4)
    second.assert_requests(3, 4).next(3).complete()
    subscriber.assert_result(1, 2, 3)
    first.assert_not_cancelled()


@pytest.mark.checklist("P18")
@each_second
def test_the_second_flow_is_subscribed_without_demand_and_not_asked(form: str) -> None:
    make, error = SECOND[form]
    first, second = TestPublisher[int](), TestPublisher[int]()
    subscriber = subscribed(make(Flow(first), Flow(second)), 1)
    first.next(1)
    end(first, error)
    second.assert_subscribed().assert_not_requested()
    subscriber.request(2)
    second.assert_requests(2)


@pytest.mark.checklist("P29")
@each_again
def test_each_run_gets_the_rest_of_the_demand(form: str) -> None:
    make, error = AGAIN[form]
    parts = Parts()
    subscriber = subscribed(make(parts.flow), 5)
    parts.last.assert_requests(5).next(1, 2)
    end(parts.last, error)
    assert len(parts.runs) == 2
    parts.last.assert_requests(3).next(3)
    subscriber.request(1)
    parts.last.assert_requests(3, 1)
    subscriber.assert_items(1, 2, 3)


@pytest.mark.checklist("P29")
def test_a_demand_of_five_over_two_attempts_gives_five() -> None:
    attempts = iter([concat(flow.range(3), flow.error(ERROR)), flow.range(10)])
    subscriber = subscribed(flow.defer(lambda: next(attempts)).pipe(retry()), 5)
    subscriber.assert_items(0, 1, 2, 0, 1).assert_not_terminated()
    subscriber.request(8)
    subscriber.assert_result(0, 1, 2, *range(10))


@each_again
def test_a_rejected_item_costs_no_demand(form: str) -> None:
    make, error = AGAIN[form]
    parts = Parts()
    subscriber = ConditionalTestSubscriber[int](lambda item: item % 2 == 0, 4)
    make(parts.flow).subscribe(subscriber)
    parts.last.next(0, 1)
    end(parts.last, error)
    parts.last.assert_requests(3)


def test_flows_are_asked_for_their_turn_only() -> None:
    first, second = TestPublisher[int](), TestPublisher[int]()
    subscribed(Flow(first).pipe(and_then(Flow(second))), 1)
    first.next(1).next(2).next(3)
    second.assert_not_subscribed()
    first.complete()
    second.assert_requests(1)


# -- cancel


@pytest.mark.checklist("P24", "P25")
@each_second
@pytest.mark.parametrize("which", [0, 1])
def test_a_cancel_reaches_the_current_flow(form: str, which: int) -> None:
    make, error = SECOND[form]
    sources = TestPublisher[int](), TestPublisher[int]()
    subscriber = subscribed(make(Flow(sources[0]), Flow(sources[1])), 5)
    if which:
        end(sources[0], error)
    subscriber.cancel()
    sources[which].assert_cancelled()
    assert sources[1].subscribed == which


@each_again
def test_no_run_follows_a_cancel(form: str) -> None:
    make, _ = AGAIN[form]
    parts = Parts()
    subscriber = TestSubscriber[int](on_item=lambda self, _: self.cancel())
    make(parts.flow).subscribe(subscriber)
    source = parts.last
    source.next(1)
    source.assert_cancelled()
    assert len(parts.runs) == 1
    subscriber.assert_not_terminated()


@pytest.mark.parametrize("form", ["repeat_when", "retry_when"])
def test_a_cancel_reaches_the_other_flow(form: str) -> None:
    cancelled: list[int] = []

    def handler(signals: Flow[Any]) -> Flow[Any]:
        return signals.do_on_cancel(lambda: cancelled.append(1))

    operator: Any = (repeat_when if form == "repeat_when" else retry_when)(handler)
    subscriber = subscribed(flow.never().pipe(operator))
    subscriber.cancel()
    assert cancelled == [1]


def test_a_flow_that_runs_for_ever_can_be_cancelled_from_within() -> None:
    runs: list[int] = []

    def count() -> None:
        runs.append(1)
        if len(runs) == 50:
            subscriber.cancel()

    subscriber: TestSubscriber[Any] = TestSubscriber()
    flow.empty().hide().do_on_subscribe(count).pipe(repeat()).subscribe(subscriber)
    assert len(runs) == 50


# -- errors


@pytest.mark.checklist("P25")
@pytest.mark.parametrize("form", ["concat", "concat_with", "start_with_flows", "and_then"])
def test_a_failure_of_the_first_flow_skips_the_second(form: str) -> None:
    second = TestPublisher[int]()
    make: Any = (
        SECOND[form][0] if form in SECOND else lambda first, second: first.pipe(and_then(second))
    )
    subscribed(make(flow.error(ERROR), Flow(second))).assert_failure(ERROR)
    second.assert_not_subscribed()


@pytest.mark.parametrize("form", ["repeat", "repeat_until", "repeat_when"])
def test_a_failure_ends_a_repetition(form: str) -> None:
    parts = Parts()
    subscriber = subscribed(AGAIN[form][0](parts.flow))
    parts.last.next(1).error(ERROR)
    subscriber.assert_failure(ERROR, 1)


def test_retry_gives_up_after_the_given_number_of_times_with_the_last_error() -> None:
    errors = [ValueError(n) for n in range(4)]
    attempts = iter(errors)
    failing = flow.error(lambda: next(attempts))
    subscribed(failing.pipe(retry(3))).assert_failure(errors[3])
    subscribed(flow.error(ERROR).pipe(retry(0))).assert_failure(ERROR)


@pytest.mark.parametrize(
    "when", [KeyError, (KeyError, OSError), lambda error: isinstance(error, KeyError)]
)
def test_only_errors_that_are_meant_are_retried(when: Any) -> None:
    errors = [KeyError(1), KeyError(2), ERROR]
    attempts = iter(errors)
    subscribed(flow.error(lambda: next(attempts)).pipe(retry(9, when=when))).assert_failure(ERROR)
    assert next(attempts, None) is None


@pytest.mark.parametrize("form", ["retry", "on_error_resume", "repeat_until", "backoff"])
def test_an_error_that_a_function_raises_fails_the_flow_and_says_where(form: str) -> None:
    raised = RuntimeError("in the function")

    def function(*_: Any) -> Any:
        raise raised

    operator: Any = {
        "retry": lambda: retry(when=function),
        "on_error_resume": lambda: on_error_resume(function),
        "repeat_until": lambda: repeat_until(function),
        "backoff": lambda: retry_when(Backoff(1, when=function)),
    }[form]()
    source: Flow[Any] = flow.empty() if form == "repeat_until" else flow.error(ERROR)
    subscribed(source.pipe(operator)).assert_failure(raised)
    assert any("test_sequence_signals.py" in note for note in raised.__notes__)
    if form != "repeat_until":
        assert raised.__context__ is ERROR


@pytest.mark.parametrize("operator", [repeat_when, retry_when])
def test_a_handler_that_fails_fails_the_flow(operator: Any) -> None:
    def handler(_: Any) -> Any:
        raise ERROR

    subscribed(flow.never().pipe(operator(handler))).assert_failure(ERROR)
    subscribed(flow.never().pipe(operator(lambda _: None))).assert_failure(TypeError)
    subscribed(flow.never().pipe(operator(lambda _: flow.error(ERROR)))).assert_failure(ERROR)


def test_a_stop_iteration_fails_the_flow() -> None:
    source: Flow[int] = flow.error(ERROR)
    empty: list[Flow[int]] = []
    made = source.pipe(on_error_resume(lambda _: next(iter(empty))))
    subscribed(made).assert_failure(RuntimeError)


def test_only_errors_that_are_meant_are_resumed_from() -> None:
    other = flow.just(1)
    subscribed(flow.error(ERROR).pipe(on_error_resume(other, KeyError))).assert_failure(ERROR)
    subscribed(flow.error(ERROR).pipe(on_error_resume(other, ValueError))).assert_result(1)


def test_an_error_of_the_other_flow_passes() -> None:
    again: list[BaseException] = []

    def resume(error: BaseException) -> Flow[int]:
        again.append(error)
        return flow.error(ERROR)

    subscribed(flow.error(KeyError()).pipe(on_error_resume(resume))).assert_failure(ERROR)
    assert len(again) == 1
    subscribed(flow.error(ERROR).pipe(on_error_resume(lambda _: None))).assert_failure(  # type: ignore[arg-type, return-value]
        TypeError
    )


def test_an_empty_flow_that_fails_is_not_replaced() -> None:
    other = TestPublisher[int]()
    subscribed(flow.error(ERROR).pipe(switch_if_empty(Flow(other)))).assert_failure(ERROR)
    other.assert_not_subscribed()


def test_the_other_flow_ends_as_it_does() -> None:
    """Empty, it is not replaced again."""
    subscribed(flow.empty().pipe(switch_if_empty(flow.empty()))).assert_result()
    subscribed(flow.empty().pipe(switch_if_empty(flow.error(ERROR)))).assert_failure(ERROR)


# -- the flow that says when


def test_another_run_waits_for_its_item() -> None:
    parts, allow = Parts(), TestPublisher[object]()
    subscriber = subscribed(parts.flow.pipe(repeat_when(lambda _: Flow(allow))))
    allow.assert_not_requested()
    parts.last.next(1).complete()
    allow.assert_requests(1)
    assert len(parts.runs) == 1
    allow.next("go")
    assert len(parts.runs) == 2
    parts.last.next(2).complete()
    allow.assert_requests(1, 1).complete()
    subscriber.assert_result(1, 2)


def test_its_end_ends_the_flow_even_during_a_run() -> None:
    for failure in (None, ERROR):
        parts, allow = Parts(), TestPublisher[object]()
        subscriber = subscribed(parts.flow.pipe(retry_when(lambda _, made=allow: Flow(made))))
        parts.last.next(1)
        end(allow, failure)
        parts.last.assert_cancelled()
        if failure is None:
            subscriber.assert_result(1)
        else:
            subscriber.assert_failure(failure, 1)


def test_if_it_has_ended_before_nothing_runs() -> None:
    parts = Parts()
    subscribed(parts.flow.pipe(repeat_when(lambda _: flow.empty()))).assert_result()
    assert parts.runs == []


def test_the_flow_of_runs_sends_the_number_of_items_of_each_run() -> None:
    counts: list[int] = []
    parts = Parts()
    subscribed(parts.flow.pipe(repeat_when(lambda runs: runs.do_on_next(counts.append))))
    parts.last.next(1, 2).complete()
    parts.last.complete()
    parts.last.next(3).complete()
    assert counts == [2, 0, 1]


def test_the_flow_of_failures_sends_the_error_objects() -> None:
    errors: list[BaseException] = []
    parts = Parts()
    subscribed(parts.flow.pipe(retry_when(lambda failed: failed.do_on_next(errors.append))))
    parts.last.error(ERROR)
    assert errors == [ERROR]
    assert len(parts.runs) == 2


@pytest.mark.parametrize("which", [0, 1])
def test_it_may_be_made_of_the_signals_more_than_once(which: int) -> None:
    """As by what treats some errors so, and others otherwise."""
    parts = Parts()
    seen: list[str] = []

    def by_kind(failed: Flow[BaseException]) -> Flow[object]:
        values = failed.filter(lambda error: isinstance(error, ValueError))
        keys = failed.filter(lambda error: isinstance(error, KeyError))
        return merge(
            values.do_on_next(lambda _: seen.append("value")),
            keys.do_on_next(lambda _: seen.append("key")),
        )

    subscriber = subscribed(parts.flow.pipe(retry_when(by_kind)))
    parts.last.error((ValueError(), KeyError())[which])
    assert seen == [("value", "key")[which]]
    parts.last.next(1).complete()
    subscriber.assert_result(1)


def test_one_of_several_that_has_enough_signals_leaves_the_others() -> None:
    parts = Parts()
    counts: list[int] = []

    def handler(runs: Flow[int]) -> Flow[object]:
        return merge(runs.do_on_next(counts.append), runs.take(1).ignore_elements())

    subscribed(parts.flow.pipe(repeat_when(handler)))
    parts.last.next(1).complete()
    parts.last.next(2, 3).complete()
    assert counts == [1, 2]
    assert len(parts.runs) == 3


def test_each_subscriber_has_its_own() -> None:
    made = flow.just(1).pipe(repeat_when(lambda runs: runs.take(2)))
    for _ in range(2):
        subscribed(made).assert_result(1, 1)


# -- arguments


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: concat(flow.just(1), 2),  # type: ignore[arg-type]
        lambda: concat_with(None),  # type: ignore[arg-type]
        lambda: start_with_flows([1]),  # type: ignore[arg-type]
        lambda: and_then(1),  # type: ignore[arg-type]
        lambda: switch_if_empty(1),  # type: ignore[arg-type]
        lambda: on_error_resume(1),  # type: ignore[arg-type]
        lambda: on_error_resume(flow.just(1), 1),  # type: ignore[arg-type]
        lambda: repeat("3"),  # type: ignore[arg-type]
        lambda: repeat(True),
        lambda: repeat_until(3),  # type: ignore[arg-type]
        lambda: repeat_when(None),  # type: ignore[arg-type]
        lambda: retry(1.5),  # type: ignore[arg-type]
        lambda: retry(when=3),  # type: ignore[arg-type]
        lambda: retry_when(3),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_refused_while_assembling(wrong: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        wrong()


@pytest.mark.parametrize("operator", [repeat, retry])
def test_fewer_than_no_times_are_refused(operator: Any) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        operator(-1)


def test_nothing_runs_while_assembling() -> None:
    source = TestPublisher[int]()
    for make, _ in SECOND.values():
        make(Flow(source), Flow(source))
    for again, _ in AGAIN.values():
        again(Flow(source))
    source.assert_not_subscribed()


def test_messages_name_the_users_line() -> None:
    made = [make(flow.just(1), flow.just(2)) for make, _ in SECOND.values()]
    made += [make(flow.just(1)) for make, _ in AGAIN.values()]
    for one in made:
        assert "test_sequence_signals.py" in repr(source_of(one))


# -- what is kept, and bad neighbours

KEPT: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "concat_with": lambda first: first.pipe(concat_with(flow.empty())),
    "concat_with, second": lambda second: flow.empty().hide().pipe(concat_with(second)),
    "and_then": lambda second: flow.just(1).pipe(and_then(second)),
    "repeat": lambda first: first.pipe(repeat(1)),
    "repeat_until": lambda first: first.pipe(repeat_until(lambda: True)),
    "repeat_when": lambda first: first.pipe(repeat_when(lambda runs: runs.take(1))),
    "retry": lambda first: first.pipe(retry(0)),
    "retry, not meant": lambda first: first.pipe(retry(2, when=KeyError)),
    "retry_when": lambda first: first.pipe(
        retry_when(lambda errors: errors.flat_map_iterable(_raise))
    ),
    "backoff": lambda first: first.pipe(retry_when(Backoff(1, when=KeyError))),
    "switch_if_empty": lambda first: first.pipe(switch_if_empty(flow.never())),
    "switch_if_empty, second": lambda second: flow.empty().pipe(switch_if_empty(second)),
    "on_error_resume": lambda first: first.pipe(on_error_resume(flow.never(), KeyError)),
    "on_error_resume, second": lambda second: flow.error(ERROR).pipe(on_error_resume(second)),
}


def _raise(error: BaseException) -> list[int]:
    raise error


@pytest.mark.parametrize("pushed", [False, True])
@pytest.mark.parametrize("form", KEPT)
def test_a_flow_that_has_ended_releases_everything(form: str, pushed: bool) -> None:
    def make(payloads: Payloads) -> Flow[Any]:
        source = payloads.pushed() if pushed else flow.from_iterable(payloads)
        return KEPT[form](source)

    assert_released(make)


@pytest.mark.usefixtures("dropped")  # which the check looks at itself
@pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)
@pytest.mark.parametrize("form", ["concat_with", "retry", "on_error_resume", "repeat_when"])
def test_the_rules_are_kept_behind_a_bad_source(form: str, bad: BadSource) -> None:
    check_bad_source(KEPT[form], only=lambda name: name == bad.name)
