"""G1 to G10: what Agera's design costs, shown on the faithful shim, and the redesign beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import flow_core as flow
from flow_rxcompat._outlets import Strategy
from flow_rxcompat.agera import (
    IllegalStateError,
    MutableRepository,
    TestLoop,
    ThreadLoop,
    observables,
    repositories,
)
from flow_rxcompat.agera.protocols import Observable, Updatable, UpdatableLike, called
from flow_rxcompat.converters import from_repository
from flow_rxcompat.signals import UPDATE, Dispatcher, Removables
from flow_rxcompat.signals import MutableRepository as Values
from flow_rxcompat.signals import Observable as Signals
from flow_rxcompat.signals import Updatable as SignalUpdatable
from flow_testing import TestSubscriber
from flow_testing.interleave import Scenario, explore_all

ACCEPTS = 100_000

UNDER_TEST = ("flow_rxcompat.agera", "flow_rxcompat.signals", "flow_rxcompat._outlets", __name__)


interleaved = pytest.mark.interleave
"""The explorer finds the race, whatever luck the threads have."""


class DoOnUpdate(Observable):
    """The article's operator: it has to remember which wrapper stands for whom (A02)."""

    def __init__(self, source: Observable, action: Callable[[], object]) -> None:
        self.source = source
        self.action = action
        self.wrappers: dict[int, tuple[UpdatableLike, Updatable]] = {}
        self.lock = threading.Lock()

    def add_updatable(self, updatable: UpdatableLike, /) -> None:
        wrapper = DoOnUpdatable(updatable, self.action)
        with self.lock:
            if id(updatable) in self.wrappers:
                raise IllegalStateError("Updatable already registered")
            self.wrappers[id(updatable)] = (updatable, wrapper)
        self.source.add_updatable(wrapper)

    def remove_updatable(self, updatable: UpdatableLike, /) -> None:
        with self.lock:
            known = self.wrappers.pop(id(updatable), None)
        if known is None:
            raise IllegalStateError("Updatable already removed")
        self.source.remove_updatable(known[1])


class DoOnUpdatable(Updatable):
    """An updatable, as it should have been in the article (A03)."""

    def __init__(self, actual: UpdatableLike, action: Callable[[], object]) -> None:
        self.actual = called(actual, "update")
        self.action = action

    def update(self) -> None:
        self.action()
        self.actual()


class Take(Observable):
    """Notifies each updatable a number of times, and removes it then: as one would write it."""

    def __init__(self, source: Observable, count: int) -> None:
        self.source = source
        self.count = count
        self.wrappers: dict[int, tuple[UpdatableLike, Updatable]] = {}

    def add_updatable(self, updatable: UpdatableLike, /) -> None:
        wrapper = Taking(self, updatable)
        self.wrappers[id(updatable)] = (updatable, wrapper)
        self.source.add_updatable(wrapper)

    def remove_updatable(self, updatable: UpdatableLike, /) -> None:
        known = self.wrappers.pop(id(updatable), None)
        if known is None:
            raise IllegalStateError("Updatable not added, cannot remove.")
        self.source.remove_updatable(known[1])


class Taking(Updatable):
    def __init__(self, owner: Take, actual: UpdatableLike) -> None:
        self.owner = owner
        self.actual = actual
        self.left = owner.count

    def update(self) -> None:
        self.left -= 1
        called(self.actual, "update")()
        if not self.left:
            self.owner.remove_updatable(self.actual)


def nothing() -> None:
    """An updatable that does nothing."""


# -- G1


@pytest.mark.checklist("A02", "A03")
def test_g1_agera_needs_a_map_in_each_stage() -> None:
    with TestLoop() as loop:
        source, done = observables.update_dispatcher(), list[str]()
        stage = DoOnUpdate(source, lambda: done.append("action"))
        updatables = [lambda: done.append("update") for _ in range(10)]
        for updatable in updatables:
            stage.add_updatable(updatable)
        assert len(stage.wrappers) == len(updatables)
        source.update()
        loop.drain()
        assert (done.count("action"), done.count("update")) == (10, 10)
        for updatable in updatables:
            stage.remove_updatable(updatable)
        assert not stage.wrappers


@pytest.mark.checklist("A02")
def test_g1_independent_consumers_contend_for_the_map() -> None:
    source = Source()
    stage = DoOnUpdate(source, nothing)
    with stage.lock:  # one consumer is about to add itself
        others = [
            threading.Thread(target=stage.add_updatable, args=(lambda: None,)) for _ in range(4)
        ]
        for other in others:
            other.start()
        for other in others:
            other.join(0.02)
        assert all(other.is_alive() for other in others)
        assert source.added == 0
    for other in others:
        other.join()
    assert source.added == 4


class Source(Observable):
    """An observable without a loop: it only counts."""

    def __init__(self) -> None:
        self.added = 0
        self.there: list[UpdatableLike] = []

    def add_updatable(self, updatable: UpdatableLike, /) -> None:
        self.added += 1
        self.there.append(updatable)

    def remove_updatable(self, updatable: UpdatableLike, /) -> None:
        for index, each in enumerate(self.there):
            if each is updatable:
                del self.there[index]
                return
        raise IllegalStateError("Updatable not added, cannot remove.")


@pytest.mark.checklist("A02", "A18")
def test_g1_signals_have_no_map_in_a_stage() -> None:
    dispatcher, done = Dispatcher(), list[str]()
    stage = dispatcher.do_on_update(lambda: done.append("action"))
    fields = {name for cls in type(stage).__mro__ for name in getattr(cls, "__slots__", ())}
    assert fields <= {"_flow", "__weakref__"}  # it knows its source, and no registered updatable
    handles = [stage.register(lambda: done.append("update")) for _ in range(10)]
    dispatcher.update()
    assert (done.count("action"), done.count("update")) == (10, 10)
    for handle in handles:
        handle.remove()
    assert not dispatcher.has_updatables


# -- G2


@pytest.mark.checklist("A06")
def test_g2_agera_refuses_the_same_updatable_twice() -> None:
    with TestLoop():
        source = observables.update_dispatcher()
        source.add_updatable(nothing)
        with pytest.raises(IllegalStateError, match="already added"):
            source.add_updatable(nothing)


@pytest.mark.checklist("A06")
def test_g2_signals_give_two_handles_for_it() -> None:
    dispatcher, calls = Dispatcher(), list[int]()

    def update() -> None:
        calls.append(1)

    first, second = dispatcher.register(update), dispatcher.register(update)
    assert first is not second
    dispatcher.update()
    assert len(calls) == 2
    first.remove()
    dispatcher.update()
    assert len(calls) == 3
    second.remove()


# -- G3


@pytest.mark.checklist("A07")
def test_g3_agera_raises_for_a_removal_after_take_has_removed() -> None:
    with TestLoop() as loop:
        source = observables.update_dispatcher()
        one = Take(source, 1)
        one.add_updatable(nothing)
        source.update()
        loop.drain()
        with pytest.raises(IllegalStateError, match="not added"):
            one.remove_updatable(nothing)


@pytest.mark.checklist("A07")
def test_g3_signals_may_be_removed_by_both() -> None:
    dispatcher, calls = Dispatcher(), list[int]()
    handle = dispatcher.take(1).register(lambda: calls.append(1))
    dispatcher.update()
    handle.remove()
    handle.remove()
    dispatcher.update()
    assert calls == [1]
    assert not dispatcher.has_updatables


@interleaved
@pytest.mark.checklist("A07")
def test_g3_of_take_and_the_consumer_one_raises_in_agera() -> None:
    def body() -> Scenario:
        loop = TestLoop()
        with loop:
            source = observables.update_dispatcher()
            one = Take(source, 1)
            one.add_updatable(nothing)
            source.update()
        raised: list[str] = []

        def take() -> None:
            try:
                loop.drain()
            except IllegalStateError:
                raised.append("take")

        def consumer() -> None:
            with TestLoop():
                try:
                    one.remove_updatable(nothing)
                except IllegalStateError:
                    raised.append("consumer")

        return Scenario(take, consumer, outcome=lambda: tuple(raised))

    # Nothing raises if the consumer is so early that take never gets the update.
    explore_all(body, modules=UNDER_TEST, expect={("take",), ("consumer",), ()})


@interleaved
@pytest.mark.checklist("A07")
def test_g3_of_take_and_the_consumer_none_raises_with_signals() -> None:
    def body() -> Scenario:
        dispatcher, calls = Dispatcher(), list[int]()
        handle = dispatcher.take(1).register(lambda: calls.append(1))

        def check() -> None:
            dispatcher.update()
            assert len(calls) <= 1
            assert not dispatcher.has_updatables

        return Scenario(dispatcher.update, handle.remove, check=check, outcome=lambda: len(calls))

    explore_all(body, modules=UNDER_TEST, expect={0, 1})


# -- G4


@pytest.mark.checklist("A04", "A08")
def test_g4_agera_leaks_what_is_removed_before_it_was_added() -> None:
    class Slow(Source):
        """Another thread removes in the moment between the map and the source."""

        def add_updatable(self, updatable: UpdatableLike, /) -> None:
            with pytest.raises(IllegalStateError):
                stage.remove_updatable(nothing)
            super().add_updatable(updatable)

    source = Slow()
    stage = DoOnUpdate(source, nothing)
    stage.add_updatable(nothing)
    assert not stage.wrappers
    assert len(source.there) == 1  # and it can never be removed
    with pytest.raises(IllegalStateError):
        stage.remove_updatable(nothing)


@pytest.mark.checklist("A04", "A08")
def test_g4_signals_that_are_removed_before_are_never_delivered() -> None:
    class Leaving(SignalUpdatable):
        def __init__(self) -> None:
            self.updates = 0

        def on_register(self, remover: object, /) -> None:
            self.remover = remover

        def update(self) -> None:
            self.updates += 1

    dispatcher, leaving = Dispatcher(), Leaving()

    def between() -> flow.Flow[object]:
        leaving.remover.remove()  # type: ignore[attr-defined]
        return dispatcher.flow  # type: ignore[return-value]

    handle = Signals(flow.defer(between)).register(leaving)  # type: ignore[arg-type]
    dispatcher.update()
    assert (leaving.updates, handle.removed) == (0, True)
    assert not dispatcher.has_updatables


@interleaved
@pytest.mark.checklist("A04", "A08")
def test_g4_agera_leaks_when_add_and_remove_race() -> None:
    def body() -> Scenario:
        source = Source()
        stage = DoOnUpdate(source, nothing)
        raised: list[str] = []

        def remove() -> None:
            try:
                stage.remove_updatable(nothing)
            except IllegalStateError as error:
                raised.append(str(error))

        def outcome() -> str:
            if not source.there:
                return "removed"
            return "leaks" if not stage.wrappers else "there, and may be removed"

        return Scenario(lambda: stage.add_updatable(nothing), remove, outcome=outcome)

    explore_all(body, modules=(__name__,), expect={"removed", "leaks", "there, and may be removed"})


@interleaved
@pytest.mark.checklist("A04", "A08")
def test_g4_signals_never_leak_when_they_race() -> None:
    class Consumer(SignalUpdatable):
        def __init__(self) -> None:
            self.removers: list[Callable[[], object]] = []
            self.updates = 0

        def on_register(self, remover: Callable[[], object], /) -> None:
            self.removers.append(remover)

        def update(self) -> None:
            self.updates += 1

    def body() -> Scenario:
        dispatcher, consumer = Dispatcher(), Consumer()
        removed: list[bool] = []

        def remove() -> None:
            for remover in consumer.removers:
                remover()
                removed.append(True)

        def check() -> None:
            dispatcher.update()
            assert consumer.updates == (0 if removed else 1)
            assert dispatcher.has_updatables is not bool(removed)

        return Scenario(
            lambda: dispatcher.do_on_update(nothing).register(consumer),
            remove,
            check=check,
            outcome=lambda: bool(removed),
        )

    explore_all(body, modules=UNDER_TEST, expect={True, False})


# -- G5


class Door:
    def __init__(self) -> None:
        self.rung = 0

    def ring(self) -> None:
        self.rung += 1


@pytest.mark.checklist("A09", "X07")
def test_g5_agera_does_not_know_a_lambda_again_nor_a_bound_method() -> None:
    with TestLoop() as loop:
        source, door = observables.update_dispatcher(), Door()
        source.add_updatable(lambda: print("Something happened"))
        with pytest.raises(IllegalStateError, match="not added"):
            source.remove_updatable(lambda: print("Something happened"))
        source.add_updatable(door.ring)
        assert door.ring == door.ring
        with pytest.raises(IllegalStateError, match="not added"):
            source.remove_updatable(door.ring)
        ring = door.ring
        source.add_updatable(ring)
        source.remove_updatable(ring)
        source.update()
        loop.drain()
        assert door.rung == 1  # the first one, for ever


@pytest.mark.checklist("A09", "A10", "X07")
def test_g5_signals_need_no_identity() -> None:
    dispatcher, door = Dispatcher(), Door()
    with dispatcher.register(door.ring), dispatcher.register(lambda: door.ring()):
        dispatcher.update()
    dispatcher.update()
    assert door.rung == 2


# -- G6


def test_g6_agera_needs_each_pair_to_be_remembered() -> None:
    with TestLoop():
        sources = [observables.update_dispatcher() for _ in range(3)]
        doors = [Door() for _ in range(3)]
        pairs = [(source, door.ring) for source in sources for door in doors]
        for source, ring in pairs:
            source.add_updatable(ring)
        for source, ring in pairs:  # without `pairs` there would be no way
            source.remove_updatable(ring)


def test_g6_signals_need_one_reference_for_all() -> None:
    sources, doors, handles = (
        [Dispatcher() for _ in range(3)],
        [Door() for _ in range(3)],
        Removables(),
    )
    for source in sources:
        for door in doors:
            handles.add(source.register(door.ring))
    sources[0].update()
    handles.remove()
    for source in sources:
        source.update()
        assert not source.has_updatables
    assert [door.rung for door in doors] == [1, 1, 1]


# -- G7


def accept_all(numbers: MutableRepository[int] | Values[int]) -> None:
    for n in range(ACCEPTS):
        numbers.accept(n)


def accepted(numbers: MutableRepository[int] | Values[int]) -> None:
    thread = threading.Thread(target=accept_all, args=(numbers,))
    thread.start()
    thread.join()


@pytest.mark.checklist("A14")
def test_g7_agera_loses_most_of_a_hundred_thousand_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: set[int] = set()
    with ThreadLoop() as loop:
        made: list[MutableRepository[int]] = []

        def create() -> None:
            numbers = repositories.mutable_repository(-1)
            numbers.add_updatable(lambda: seen.add(numbers.get()))
            made.append(numbers)

        loop.call(create)
        accepted(made[0])
        loop.call(nothing)  # UPDATE, then CALL_UPDATABLE: two more turns
        loop.call(nothing)
        loop.call(nothing)
    with capsys.disabled():
        print(f"\n{ACCEPTS} accepts: the shim of Agera has shown {len(seen)} values")
    assert 1 <= len(seen) < ACCEPTS // 2
    assert ACCEPTS - 1 in seen


@pytest.mark.checklist("A14")
def test_g7_on_a_loop_that_is_busy_it_is_one() -> None:
    with TestLoop() as loop:
        numbers, seen = repositories.mutable_repository(-1), set[int]()
        numbers.add_updatable(lambda: seen.add(numbers.get()))
        accepted(numbers)
        loop.drain()
        assert seen == {ACCEPTS - 1}


@pytest.mark.checklist("A14")
@pytest.mark.parametrize("redesigned", [False, True])
def test_g7_the_bridge_with_a_buffer_has_all_of_them_in_order(redesigned: bool) -> None:
    with TestLoop() as loop:
        consumer = TestSubscriber[int](0)
        numbers: MutableRepository[int] | Values[int]
        if redesigned:
            numbers = Values(-1)
            values = numbers.values(strategy="buffer", capacity=ACCEPTS, current=False)
        else:
            numbers = repositories.mutable_repository(-1)
            values = from_repository(numbers, strategy="buffer", capacity=ACCEPTS, current=False)
        values.subscribe(consumer)
        accepted(numbers)
        loop.drain()
        consumer.request(ACCEPTS)
        assert consumer.items == list(range(ACCEPTS))


class OnALoop(flow.CoreSubscriber[int]):
    """Asks for more from its own loop, `batch` values at a time."""

    def __init__(self, loop: ThreadLoop, batch: int) -> None:
        self.loop = loop
        self.batch = batch
        self.seen: list[int] = []
        self.last = threading.Event()

    def on_subscribe(self, subscription: flow.Subscription, /) -> None:
        self.subscription = subscription
        self.loop.post(self.more)

    def more(self) -> None:
        self.subscription.request(self.batch)

    def on_next(self, item: int, /) -> None:
        self.seen.append(item)
        if len(self.seen) % self.batch == 0:
            self.loop.post(self.more)
        if item == ACCEPTS - 1:
            self.last.set()

    def on_error(self, error: BaseException, /) -> None:
        raise AssertionError from error

    def on_complete(self) -> None:
        raise AssertionError


@pytest.mark.checklist("A14")
@pytest.mark.parametrize(("strategy", "batch"), [("buffer", 1000), ("latest", 1)])
def test_g7_the_bridge_against_a_consumer_on_another_loop_at_the_same_time(
    strategy: Strategy, batch: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadLoop() as loop:
        made: list[MutableRepository[int]] = []
        loop.call(lambda: made.append(repositories.mutable_repository(-1)))
        consumer = OnALoop(loop, batch)
        from_repository(
            made[0], strategy=strategy, capacity=ACCEPTS, current=False, loop=loop
        ).subscribe(consumer)
        accepted(made[0])
        assert consumer.last.wait(60)
        consumer.subscription.cancel()
    seen = consumer.seen
    with capsys.disabled():
        print(f"\n{ACCEPTS} accepts: the bridge with {strategy!r} has shown {len(seen)} values")
    assert seen[-1] == ACCEPTS - 1
    if strategy == "buffer":
        assert seen == list(range(ACCEPTS))
    else:
        assert seen == sorted({*seen})  # each of them once, in order


@pytest.mark.checklist("A14")
@pytest.mark.parametrize("strategy", ["latest", "drop"])
def test_g7_fewer_are_a_choice_and_latest_has_the_last_one_surely(strategy: str) -> None:
    with TestLoop() as loop:
        numbers, consumer = repositories.mutable_repository(-1), TestSubscriber[int](1)
        from_repository(numbers, strategy=strategy, current=False).subscribe(consumer)  # type: ignore[arg-type]
        accepted(numbers)
        loop.drain()
        consumer.request(10)
        assert consumer.items == ([0, ACCEPTS - 1] if strategy == "latest" else [0])


# -- G8


@pytest.mark.checklist("A15")
def test_g8_agera_has_no_error_and_the_repository_is_dead() -> None:
    with TestLoop() as loop:
        source, heard, runs = observables.update_dispatcher(), list[str](), list[int]()

        def directive(_: int) -> int:
            runs.append(1)
            if len(runs) == 2:
                raise LookupError("directive")
            return len(runs)

        numbers = (
            repositories.repository_with_initial_value(0)
            .observe(source)
            .on_updates_per_loop()
            .then_transform(directive)
            .compile()
        )
        numbers.add_updatable(lambda: heard.append("update"))
        loop.drain()
        source.update()
        with pytest.raises(LookupError, match="directive"):
            loop.drain()
        for _ in range(3):
            source.update()
            loop.drain()
        assert (len(runs), heard, numbers.get()) == (2, ["update"], 1)


@pytest.mark.checklist("A15", "A20")
def test_g8_signals_pass_the_error_on_and_clean_up() -> None:
    dispatcher, heard, error = Dispatcher(), list[object](), LookupError("directive")

    def directive() -> int:
        raise error

    dispatcher.map(directive).subscribe(heard.append, heard.append)
    dispatcher.update()
    assert heard == [error]
    assert not dispatcher.has_updatables


# -- G9


@pytest.mark.checklist("A16")
def test_g9_agera_never_ends_so_that_its_consumer_waits_for_ever() -> None:
    assert not {"complete", "completed", "terminated"} & {*dir(Updatable), *dir(Observable)}
    with TestLoop() as loop:
        numbers, consumer = repositories.mutable_repository(0), TestSubscriber[int]()
        from_repository(numbers).subscribe(consumer)
        numbers.accept(1)  # the last one, but that is not known
        loop.drain()
        consumer.assert_not_terminated()


@pytest.mark.checklist("A16")
def test_g9_signals_complete() -> None:
    values, over = Values(0), list[str]()
    values.register(nothing, on_complete=lambda: over.append("over"))
    values.accept(1)
    values.complete()
    assert over == ["over"]


# -- G10


@pytest.mark.checklist("A13", "A21")
def test_g10_agera_updates_on_the_loop_only() -> None:
    with TestLoop() as loop:
        numbers, threads = repositories.mutable_repository(0), list[str]()
        numbers.add_updatable(lambda: threads.append(threading.current_thread().name))
        caller = threading.Thread(target=lambda: numbers.accept(1), name="caller")
        caller.start()
        caller.join()
        assert threads == []  # no way to react there
        loop.drain()
        assert threads == [threading.current_thread().name]


@pytest.mark.checklist("A21")
def test_g10_signals_react_on_the_caller_and_move_when_one_says_so() -> None:
    values, heard, loop = Values(0), list[tuple[str, str]](), TestLoop()

    def note(what: str) -> None:
        heard.append((what, threading.current_thread().name))

    moved = values.do_on_update(lambda: note("first")).observe_on(loop.post)
    moved.register(lambda: note("then"))
    caller = threading.Thread(target=lambda: values.accept(1), name="caller")
    caller.start()
    caller.join()
    assert heard == [("first", "caller")]
    loop.drain()
    assert heard[1:] == [("then", threading.current_thread().name)]


# -- defects of RxAgera, which converts by its own operators


def taken(count: int, updates: int) -> tuple[int, bool]:
    """Return the number of updates that came, and whether the source was left."""
    dispatcher, calls = Dispatcher(), list[int]()
    handle = dispatcher.take(count).register(lambda: calls.append(1))
    for _ in range(updates):
        dispatcher.update()
    left = not dispatcher.has_updatables
    handle.remove()  # raises there
    assert not dispatcher.has_updatables
    return len(calls), left


@pytest.mark.checklist("A07")
def test_take_leaves_its_source_and_may_be_removed_before_and_after() -> None:
    assert taken(3, 0) == (0, False)
    assert taken(2, 5) == (2, True)


def test_flat_map_delivers_all() -> None:
    outer, inner, calls = Dispatcher(), Dispatcher(), list[int]()
    handle = outer.flat_map(lambda: inner).register(lambda: calls.append(1))
    outer.update()
    inner.update()
    inner.update()
    assert len(calls) == 2
    handle.remove()
    assert not outer.has_updatables
    assert not inner.has_updatables


def test_take_until_that_the_consumer_leaves_has_left_both() -> None:
    source, until = Dispatcher(), Dispatcher()
    source.take_until(until).register(nothing).remove()
    assert not source.has_updatables
    assert not until.has_updatables


@pytest.mark.checklist("A16")
def test_an_updatable_that_registers_after_the_end_gets_it() -> None:
    dispatcher, over = Dispatcher(), list[str]()
    early = dispatcher.register(nothing)
    dispatcher.complete()
    late = dispatcher.register(nothing, on_complete=lambda: over.append("over"))
    assert (early.removed, late.removed, over) == (True, True, ["over"])
    early.remove()
    late.remove()


# -- the advice


@pytest.mark.checklist("A17")
def test_an_existing_library_is_all_it_takes() -> None:
    """The article's advice: signals are a `Publisher`, and any flow is one already."""
    heard: list[object] = []
    with flow.just(UPDATE, UPDATE).subscribe(heard.append):
        assert heard == [UPDATE, UPDATE]
