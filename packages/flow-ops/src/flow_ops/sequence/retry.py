"""`retry` and `retry_when`: the same flow again, when it has failed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.backoff import Backoff, RetryExhaustedError, waiting
from flow_core.clocks import Seconds, in_seconds
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Disposable, Publisher
from flow_core.stages import ErrorFilter, describe, error_filter, matches
from flow_ops.arbiters import SwitchArbiter
from flow_ops.coordination import coordinated
from flow_ops.sequence._companion import Companioned
from flow_ops.sequence.repeat import check_times
from flow_ops.time._timed import seconds

__all__ = ["retry", "retry_when"]

T = TypeVar("T")


def retry(
    times: int | None = None,
    *,
    backoff: Backoff | Seconds | None = None,
    when: ErrorFilter = Exception,
) -> Operator[T, Flow[T]]:
    """Subscribe again to a flow that has failed, at once or after a while; its items are kept.

    >>> import flow_core as flow
    >>> left = [0, 0]
    >>> once = flow.just(1, 2).map(lambda n: n // (left.pop() if left else 1))
    >>> list(once.retry(2))
    [1, 2]

    The whole flow begins again. `map_concurrent` has a ``retry`` for each of its items.

    Demand: exact; the next attempt gets the demand that the previous one has not used. The flow is
    subscribed again even without demand.
    Thread: the upstream's; an attempt begins where the one before has failed, or on the clock's
    thread.
    Fusion: none.
    Errors: the last one, when no attempt is left, or `when` does not select it.

    Args:
        times: how often to try again after the first failure; None for any number of times, or for
            the number that the Backoff has.
        backoff: how long to wait before an attempt: the time in seconds before the first attempt,
            from which the time grows as that of a `Backoff` does; or a `Backoff`. None to try again
            at once.
        when: selects the errors after which to try again: a class, a tuple of classes, or a
            function that returns something true.

    Raises:
        TypeError: if `times` is neither an int nor None, `backoff` is neither a time nor a Backoff,
            or `when` is not a filter of errors.
        ValueError: if `times` or a time is less than 0.
    """
    if times is not None:
        check_times(times, "retry")
    error_filter("retry", when)
    detail = "" if times is None else str(times)
    if when is not Exception:
        detail += f"{', ' if detail else ''}when={describe(when)}"
    if backoff is not None:
        waits = waiting("retry", times, backoff, when)
        detail = f"{detail}{', ' if detail else ''}backoff={seconds(in_seconds(waits.first))}"
        return coordinated(
            "retry",
            detail,
            lambda flow, downstream, label: BackoffRetry(
                flow, waits, downstream, label, counts=False
            ),
        )
    return coordinated(
        "retry",
        detail,
        lambda flow, downstream, label: Retry(flow, times, when, downstream, label),
    )


def retry_when(
    handler: Callable[[Flow[BaseException]], Publisher[object]] | Backoff,
) -> Operator[T, Flow[T]]:
    """Subscribe again to a flow that has failed: after a while, or for each item of another flow.

    >>> import flow_core as flow
    >>> from flow_testing import TestSubscriber, VirtualClock
    >>> from flow_core import Backoff
    >>> clock = VirtualClock()
    >>> failing = flow.from_callable(lambda: print(f"at {clock.now()} s") or 1 // 0)
    >>> subscriber = TestSubscriber()
    >>> backoff = Backoff(1, factor=3, jitter=0, max_attempts=2, clock=clock)
    >>> failing.retry_when(backoff).subscribe(subscriber)
    at 0.0 s
    >>> clock.run()
    at 1.0 s
    at 4.0 s
    >>> subscriber.error
    RetryExhaustedError("retries exhausted: 2 of 2; the last failure: ZeroDivisionError('...')")

    A `Backoff` says how long to wait. For each subscriber, a handler gets the flow of the errors,
    and returns another flow, each item of which starts the next attempt. When the other flow ends,
    this flow ends, too, at once, even during an attempt: with ``errors.take(3)`` the third item is
    the last, and no attempt follows it.

    Demand: exact; the next attempt gets the demand that the previous one has not used. One item is
    requested of the other flow for each attempt.
    Thread: the upstream's; an attempt begins on the clock's thread, or where the other flow sends
    its item. Fusion: none.
    Errors: those that a Backoff does not retry; `RetryExhaustedError`; those of the other flow, and
    those that the handler raises.

    Args:
        handler: a `Backoff`; or a function, called once per subscriber, when it subscribes. Its
            result need not use its argument. Of the argument's errors that are not requested, only
            the last one is kept.

    Raises:
        TypeError: if `handler` is neither a Backoff nor a function.
    """
    if isinstance(handler, Backoff):
        backoff = handler
        return coordinated(
            "retry_when",
            "Backoff",
            lambda flow, downstream, label: BackoffRetry(flow, backoff, downstream, label),
        )
    if not callable(handler):
        raise TypeError(
            f"retry_when() takes a Backoff or a function from a Flow to a Flow, not {handler!r}"
        )
    function = handler
    return coordinated(
        "retry_when",
        describe(handler),
        lambda flow, downstream, label: RetryWhen(flow, function, downstream, label),
    )


@final
class Retry(SwitchArbiter[T]):
    """Runs `retry`."""

    __slots__ = ("_left", "_source", "_when")

    def __init__(
        self,
        source: Flow[T],
        times: int | None,
        when: ErrorFilter,
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._left = times
        self._when = when

    @override
    def open(self) -> None:
        self.switch_to(self._source)

    @override
    def ended(self, error: BaseException | None) -> None:
        if error is None:
            self.complete()
        elif self._left == 0 or self.hopeless(error):
            self.fail(error)
        else:
            if self._left is not None:
                self._left -= 1
            if self._when is Exception and isinstance(error, Exception):
                self._switch(self._source)  # there is no function to call
            else:
                self.outside(self._decide, error, hooks.drop_error)

    def _decide(self, error: BaseException) -> None:
        if matches(self._when, error):
            self.switch_to(self._source)
        else:
            self.post(self.fail, error, hooks.drop_error)


@final
class RetryWhen(Companioned[T, BaseException]):
    """Runs `retry_when` with a function."""

    __slots__ = ()

    @override
    def ended(self, error: BaseException | None) -> None:
        if error is None:
            self.complete()
        elif self.hopeless(error):
            self.fail(error)
        else:
            self.ask(error)


@final
class BackoffRetry(SwitchArbiter[T]):
    """Runs `retry_when` with a `Backoff`, and `retry`.

    Args:
        source: the upstream.
        backoff: how long to wait, and how often.
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
        counts: whether the last error is raised as a `RetryExhaustedError`, which says how often
            the flow was tried.
    """

    __slots__ = ("_backoff", "_clock", "_counts", "_random", "_retries", "_source", "_timer")

    def __init__(
        self,
        source: Flow[T],
        backoff: Backoff,
        downstream: CoreSubscriber[T],
        label: str,
        *,
        counts: bool = True,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._backoff = backoff
        self._clock = self.clock_for(backoff.clock)
        self._random = Random(backoff.seed)
        self._counts = counts
        self._retries = 0
        self._timer: Disposable | None = None

    @override
    def open(self) -> None:
        self.switch_to(self._source)

    @override
    def received(self, item: T) -> bool:
        if self._backoff.transient:
            self._retries = 0
        return self.emit(item)

    @override
    def ended(self, error: BaseException | None) -> None:
        if error is None:
            self.complete()
        else:
            self.outside(self._decide, error, hooks.drop_error)

    @override
    def closed(self) -> None:
        super().closed()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.dispose()

    def _decide(self, error: BaseException) -> None:
        backoff, retries = self._backoff, self._retries
        is_last = retries == backoff.max_attempts and not self._counts
        if is_last or not matches(backoff.when, error) or self.hopeless(error):
            self.post(self.fail, error, hooks.drop_error)
            return
        if retries == backoff.max_attempts:
            exhausted = RetryExhaustedError(
                f"retries exhausted: {retries} of {retries}; the last failure: {error!r}",
                retries=retries,
            )
            exhausted.__cause__ = error
            exhausted.add_note(f"in {self.label}")
            self.post(self.fail, exhausted, hooks.drop_error)
            return
        self._retries = retries + 1
        delay_s = backoff.delay_s(retries, self._random)
        self._timer = timer = self.after(self._clock, delay_s, self._due, None)
        if self.over:  # `closed` may have been here before
            timer.dispose()
            self._timer = None

    def _due(self, _: object) -> None:
        self._timer = None
        self._switch(self._source)
