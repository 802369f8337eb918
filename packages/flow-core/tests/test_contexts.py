"""Context variables follow a flow to other threads where they are asked to (X11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import Context, ContextVar, copy_context
from threading import Event, Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core import (
    ConditionalSubscriber,
    CoreSubscriber,
    Emitter,
    Flow,
    Fusion,
    QueueSubscription,
    Subscriber,
    Subscription,
)
from flow_core.introspection import links
from flow_core.operators import serialize
from flow_core.subscribers import core_subscriber
from flow_testing import (
    TIMEOUT_S,
    ConditionalTestSubscriber,
    TestPublisher,
    TestSubscriber,
    assert_released,
    assert_result,
    check_bad_source,
    observe,
    race,
)

pytestmark = pytest.mark.checklist("X11")

USER: ContextVar[str] = ContextVar("user", default="nobody")
PLACE: ContextVar[str] = ContextVar("place", default="nowhere")


@pytest.fixture(autouse=True)
def as_ada() -> Iterator[None]:
    """The tests run as Ada, other threads as "nobody"."""
    token = USER.set("Ada")
    yield
    USER.reset(token)


def user(_: object) -> str:
    return USER.get()


def in_thread(function: Any, *args: Any) -> None:
    """Run in another thread, which has a separate context, to the end."""
    race(lambda: function(*args))


def failing(_: object) -> str:
    raise ValueError(USER.get())


class Recording(CoreSubscriber[Any]):
    """Notes in whose context each signal comes."""

    def __init__(self, request: int = flow.UNBOUNDED) -> None:
        self.seen: list[tuple[str, str]] = []
        self.requests = request
        self.subscription: Subscription | None = None

    def note(self, signal: str) -> None:
        self.seen.append((signal, USER.get()))

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.note("on_subscribe")
        self.subscription = subscription
        if self.requests:
            subscription.request(self.requests)

    def on_next(self, item: Any, /) -> None:
        self.note("on_next")

    def on_error(self, error: BaseException, /) -> None:
        self.note("on_error")

    def on_complete(self) -> None:
        self.note("on_complete")


class Catching:
    """A publisher that keeps its subscriber, and notes what is requested."""

    def __init__(self) -> None:
        self.subscriber: CoreSubscriber[int] | None = None
        self.requested: list[int] = []

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self.subscriber = core_subscriber(subscriber)
        subscriber.on_subscribe(self)

    def taking(self) -> ConditionalSubscriber[int]:
        assert isinstance(self.subscriber, ConditionalSubscriber)
        return self.subscriber

    def request(self, n: int, /) -> None:
        self.requested.append(n)

    def cancel(self) -> None: ...


# -- context_capture


def test_without_a_capture_signals_run_in_the_context_of_the_thread_that_sends_them() -> None:
    publisher = TestPublisher[int]()
    subscriber = observe(Flow(publisher).map(user))
    in_thread(publisher.next, 1)
    publisher.next(2)
    subscriber.assert_items("nobody", "Ada").cancel()


def test_captured_signals_run_in_the_context_of_the_subscriber_whatever_thread_brings_them() -> (
    None
):
    publisher = TestPublisher[int]()
    recording = Recording()
    Flow(publisher).context_capture().subscribe(recording)
    in_thread(publisher.next, 1)
    in_thread(publisher.complete)
    assert recording.seen == [("on_subscribe", "Ada"), ("on_next", "Ada"), ("on_complete", "Ada")]


def test_an_error_comes_in_the_captured_context_too() -> None:
    publisher = TestPublisher[int]()
    recording = Recording()
    Flow(publisher).context_capture().subscribe(recording)
    in_thread(publisher.error, ValueError("down"))
    assert recording.seen[-1] == ("on_error", "Ada")


def test_the_context_is_that_of_subscribing_not_of_assembling_and_not_a_later_one() -> None:
    publisher = TestPublisher[int]()
    made = Flow(publisher).context_capture().map(user)
    token = USER.set("Grace")
    try:
        subscriber = observe(made)
    finally:
        USER.reset(token)
    publisher.next(1)
    subscriber.assert_items("Grace").cancel()


def test_each_subscriber_has_a_separate_captured_context() -> None:
    subscribers: list[TestSubscriber[str]] = []
    for name in ("Grace", "Barbara"):
        publisher = TestPublisher[int]()
        token = USER.set(name)
        subscribers.append(observe(Flow(publisher).context_capture().map(user)))
        USER.reset(token)
        in_thread(publisher.next, 1)
    assert [subscriber.items for subscriber in subscribers] == [["Grace"], ["Barbara"]]


def test_a_value_that_a_signal_sets_is_gone_when_it_returns() -> None:
    seen: list[str] = []

    def note_and_set(n: int) -> None:
        seen.append(USER.get())
        USER.set(f"user {n}")

    publisher = TestPublisher[int]()
    observe(Flow(publisher).context_capture().do_on_next(note_and_set))
    seen.clear()
    publisher.next(1).next(2)
    assert seen == ["Ada", "Ada"]
    assert USER.get() == "Ada"


def test_stages_above_a_capture_keep_the_context_that_they_run_in() -> None:
    publisher = TestPublisher[int]()
    subscriber = observe(
        Flow(publisher).map(user).context_capture().map(lambda above: (above, USER.get()))
    )
    in_thread(publisher.next, 1)
    subscriber.assert_items(("nobody", "Ada")).cancel()


def test_a_requester_of_another_thread_gets_items_in_the_captured_context() -> None:
    subscriber = observe(flow.range(3).context_capture().map(user), request=0)
    in_thread(subscriber.request, 2)
    subscriber.assert_items("Ada", "Ada").cancel()


def test_a_signal_within_a_signal_and_a_signal_of_two_threads_do_not_meet_in_one_context() -> None:
    inner: TestSubscriber[str] = TestSubscriber()
    publisher, other = TestPublisher[int](), TestPublisher[int]()

    # The inner flow has the context that the outer signal runs in right now.
    observe(
        Flow(publisher)
        .context_capture()
        .do_on_next(lambda _: Flow(other).context_capture().map(user).subscribe(inner))
        .do_on_next(lambda _: other.next(1))
    )
    in_thread(publisher.next, 1)
    inner.assert_items("Ada").cancel()


def test_two_threads_may_be_below_one_capture_at_once() -> None:
    below, go_on = Event(), Event()
    publisher = TestPublisher[int]()
    requests: list[str] = []

    def wait(_: int) -> None:
        below.set()
        assert go_on.wait(TIMEOUT_S)

    subscriber = TestSubscriber[int](0)
    noting = Flow(publisher).do_on_request(lambda n: requests.append(USER.get()))
    noting.context_capture().context_write(PLACE, "here").do_on_next(wait).subscribe(subscriber)
    subscriber.request(1)
    thread = Thread(target=publisher.next, args=(1,))
    thread.start()
    assert below.wait(TIMEOUT_S)
    subscriber.request(5)  # goes through both links while a signal is in them
    go_on.set()
    thread.join(TIMEOUT_S)
    subscriber.assert_items(1).cancel()
    assert requests == ["Ada", "Ada"]


def test_items_that_an_emitter_sends_from_a_thread_arrive_in_the_captured_context() -> None:
    def send(emitter: Emitter[str]) -> None:
        in_thread(lambda: (emitter.next(USER.get()), emitter.complete()))

    made = flow.create(send).context_capture().map(lambda above: (above, USER.get()))
    observe(made).assert_result(("nobody", "Ada"))
    assert list(made) == [("nobody", "Ada")]


# -- context_write


def test_stages_above_see_the_values_and_stages_below_do_not() -> None:
    made = flow.range(2).map(user).context_write(USER, "root")
    both = made.map(lambda above: (above, USER.get()))
    expected = [("root", "Ada")] * 2
    assert list(both) == expected
    observe(both).assert_result(*expected)
    observe(both.hide()).assert_result(*expected)


def test_several_values_may_be_written_at_once_and_the_nearest_above_counts() -> None:
    made = (
        flow.just(1)
        .map(lambda _: (USER.get(), PLACE.get()))
        .context_write(PLACE, "the attic")
        .context_write({USER: "root", PLACE: "the cellar"})
    )
    assert made.first() == ("root", "the attic")
    observe(made).assert_result(("root", "the attic"))


def test_subscribing_requesting_and_cancelling_above_see_the_values() -> None:
    seen: list[tuple[str, str]] = []

    def note(signal: str) -> None:
        seen.append((signal, USER.get()))

    upstream = (
        flow.never()
        .do_on_request(lambda _: note("request"))
        .do_on_subscribe(lambda: note("subscribe"))
        .do_on_cancel(lambda: note("cancel"))
    )
    subscriber = observe(upstream.context_write(USER, "root"), request=0)
    in_thread(subscriber.request, 1)
    in_thread(subscriber.cancel)
    assert sorted(seen) == [("cancel", "root"), ("request", "root"), ("subscribe", "root")]


def test_signals_go_down_in_the_context_of_the_subscriber_even_from_another_thread() -> None:
    publisher = TestPublisher[int]()
    recording = Recording()
    Flow(publisher).context_write(USER, "root").subscribe(recording)
    in_thread(publisher.next, 1)
    in_thread(publisher.complete)
    assert recording.seen == [("on_subscribe", "Ada"), ("on_next", "Ada"), ("on_complete", "Ada")]


def test_an_iteration_closes_what_is_above_in_the_context_with_the_values() -> None:
    seen: list[str] = []

    def items() -> Iterator[str]:
        try:
            while True:
                yield USER.get()
        finally:
            seen.append(USER.get())

    iterator = iter(flow.from_iterable(items()).context_write(USER, "root"))
    assert next(iterator) == "root"
    close = getattr(iterator, "close", None)
    assert close is not None
    close()
    assert seen == ["root"]


def test_the_values_are_seen_when_another_thread_continues_the_iteration() -> None:
    iterator = iter(flow.range(2).map(user).context_write(PLACE, "here"))
    found = [next(iterator)]
    in_thread(lambda: found.append(next(iterator)))
    assert found == ["Ada", "Ada"]


def test_a_generator_keeps_what_it_sets_for_itself() -> None:
    def items() -> Iterator[str]:
        for n in range(3):
            yield USER.get()
            USER.set(f"generator {n}")

    made = flow.from_iterable(items()).context_write({})
    assert list(made) == ["Ada", "generator 0", "generator 1"]
    assert USER.get() == "Ada"


def test_an_error_is_the_identical_object_and_leaves_the_context_as_it_was() -> None:
    made = flow.range(3).map(failing).context_write(USER, "root")
    with pytest.raises(ValueError, match="root"):
        list(made)
    observe(made).assert_failure(ValueError).assert_error_message("root")
    error = LookupError("mine")
    observe(flow.error(error).context_write({}).context_capture()).assert_failure(error)
    assert USER.get() == "Ada"


@pytest.mark.parametrize(
    "wrong", [(), (1,), (USER,), ("user", "Ada"), ({"user": "Ada"},), ({USER: 1}, 2), (USER, 1, 2)]
)
def test_context_write_refuses_anything_but_a_variable_with_a_value(wrong: tuple[Any, ...]) -> None:
    made: Any = flow.range(3)
    with pytest.raises(TypeError):
        made.context_write(*wrong)


def test_the_operators_say_what_they_are() -> None:
    assert repr(capture(flow.range(3))) == "range(0, 3) | context_capture()"
    assert repr(write(flow.range(3))) == "range(0, 3) | context_write(place='here')"
    assert repr(flow.range(3).context_write({})) == "range(0, 3) | context_write()"


# -- asyncio


def test_in_an_event_loop_a_capture_brings_the_context_of_the_subscribing_task() -> None:
    async def ticks() -> AsyncIterator[int]:
        for n in range(2):
            await asyncio.sleep(0)
            yield n

    async def main() -> list[tuple[str, str]]:
        loop = asyncio.get_running_loop()
        outside: Flow[int] = flow.from_async_iterable(ticks(), loop=loop)
        made = outside.map(user).context_capture().map(lambda above: (above, USER.get()))
        subscriber = TestSubscriber[tuple[str, str]](0)
        USER.set("the task")
        made.subscribe(subscriber)
        done = asyncio.Event()

        def request() -> None:
            subscriber.request(5)
            loop.call_soon_threadsafe(done.set)

        # A thread of its own context requests: that is not the source's.
        thread = Thread(target=request)
        thread.start()
        await done.wait()
        thread.join(TIMEOUT_S)
        while not subscriber.terminated:
            await asyncio.sleep(0)
        return subscriber.items

    assert asyncio.run(main()) == [("the task", "the task")] * 2


def test_an_async_iterable_above_a_write_sees_the_values_in_its_own_loop_and_thread() -> None:
    async def names() -> AsyncIterator[str]:
        for _ in range(2):
            await asyncio.sleep(0)
            yield USER.get()

    made = flow.from_async_iterable(names()).context_write(USER, "root")
    assert list(made.map(lambda above: (above, USER.get()))) == [("root", "Ada")] * 2


def test_tasks_that_run_at_once_keep_their_contexts_apart() -> None:
    async def one(name: str) -> list[tuple[str, str]]:
        USER.set(name)
        made = flow.range(20).hide().map(user).context_write(PLACE, name)
        found: list[tuple[str, str]] = []
        async for above in made:
            await asyncio.sleep(0)
            found.append((above, USER.get()))
        return found

    async def main() -> list[list[tuple[str, str]]]:
        return await asyncio.gather(*(one(f"task {n}") for n in range(5)))

    for n, found in enumerate(asyncio.run(main())):
        assert found == [(f"task {n}", f"task {n}")] * 20


# -- the protocol

Link = Callable[[Flow[Any]], Flow[Any]]


def capture(flow: Flow[Any]) -> Flow[Any]:
    return flow.context_capture()


def write(flow: Flow[Any]) -> Flow[Any]:
    return flow.context_write(PLACE, "here")


LINKS = {"capture": capture, "write": write}
each_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)


@each_link
def test_every_form_gives_the_same_items(link: Link) -> None:
    assert_result(lambda: flow.range(5).pipe(link), [0, 1, 2, 3, 4])
    assert_result(
        lambda: flow.range(9).pipe(link).filter(lambda n: n % 2 == 0).pipe(link),
        [0, 2, 4, 6, 8],
    )
    error = LookupError("end")
    assert_result(
        lambda: flow.just(1).pipe(link).hide().end_with(2).map(lambda n: _last(n, error)),
        [1],
        error,
    )


def _last(n: int, error: BaseException) -> int:
    if n == 2:
        raise error
    return n


@each_link
@pytest.mark.checklist("F35")
def test_no_fusion_is_granted_and_no_subscription_is_forwarded(link: Link) -> None:
    observe(flow.range(3).pipe(link), fusion=Fusion.ANY).assert_fusion(Fusion.NONE).assert_result(
        0, 1, 2
    )
    publisher = TestPublisher[int]()
    subscriber = observe(Flow(publisher).pipe(link))
    assert not isinstance(subscriber.subscription, QueueSubscription)
    assert [each.operator for each in links(subscriber.subscription)][1:] == ["_Link"]
    subscriber.cancel()
    publisher.assert_cancelled()


@each_link
@pytest.mark.checklist("F12")
def test_a_dropped_item_costs_no_request(link: Link) -> None:
    def is_even(n: int) -> bool:
        assert USER.get() == "Ada"
        return n % 2 == 0

    source = Catching()
    conditional = ConditionalTestSubscriber[int](is_even, request=1)
    Flow[int](source).pipe(link).subscribe(conditional)
    taking = source.taking()
    tried: list[bool] = []
    in_thread(lambda: tried.extend(taking.try_on_next(n) for n in (1, 2)))
    assert tried == [False, True]
    assert source.requested == [1]
    conditional.assert_items(2).cancel()


@each_link
def test_a_subscriber_that_cannot_be_asked_uses_every_item(link: Link) -> None:
    source = Catching()
    plain = TestSubscriber[int](2)
    Flow[int](source).pipe(link).subscribe(plain)
    taking = source.taking()
    assert taking.try_on_next(1)
    plain.assert_items(1).cancel()


@each_link
def test_on_error_of_a_subscriber_that_raises_runs_in_its_context(link: Link) -> None:
    seen: list[tuple[str, str]] = []

    def fail(_: int) -> None:
        raise ValueError("mine")

    def on_error(error: BaseException) -> None:
        seen.append((str(error), USER.get()))

    flow.range(3).pipe(link).subscribe(fail, on_error)
    assert seen == [("mine", "Ada")]


@each_link
def test_a_source_that_breaks_the_rules_is_survived(link: Link) -> None:
    check_bad_source(
        lambda upstream: upstream.pipe(link), only=lambda name: "two threads" not in name
    )
    check_bad_source(lambda upstream: upstream.pipe(serialize()).pipe(link), bounded=True)


@each_link
def test_nothing_is_retained(link: Link) -> None:
    assert_released(lambda payloads: flow.from_iterable(payloads).pipe(link))
    assert_released(lambda payloads: flow.from_iterable(payloads).hide().pipe(link).map(str))


@each_link
def test_a_million_requests_within_on_next_take_constant_stack(link: Link) -> None:
    subscriber = TestSubscriber[int](1, on_item=lambda it, _: it.request(1))
    flow.range(20_000).pipe(link).subscribe(subscriber)
    assert len(subscriber.items) == 20_000


def test_a_flow_that_is_assembled_in_one_context_runs_in_another() -> None:
    made = flow.range(2).map(user).context_write({})
    grace: Context = copy_context()
    grace.run(USER.set, "Grace")
    assert grace.run(list, made) == ["Grace", "Grace"]
    assert list(made) == ["Ada", "Ada"]
