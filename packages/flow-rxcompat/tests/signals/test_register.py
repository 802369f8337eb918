"""Registering with signals: R1 to R3."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

import flow_core as flow
from flow_core.errors import NoneItemError
from flow_core.protocols import Disposable, Subscriber, Subscription
from flow_rxcompat.agera import TestLoop, observables
from flow_rxcompat.signals import (
    UPDATE,
    Dispatcher,
    MutableRepository,
    Observable,
    Removable,
    Removables,
    Signal,
    Updatable,
    register_with,
)
from flow_testing import Drops, TestSubscriber


class Recorder(Updatable):
    def __init__(self) -> None:
        self.heard: list[object] = []
        self.remover: Removable | None = None

    def on_register(self, remover: Removable, /) -> None:
        self.remover = remover
        self.heard.append("registered")

    def update(self) -> None:
        self.heard.append("update")

    def error(self, error: BaseException, /) -> None:
        self.heard.append(error)

    def complete(self) -> None:
        self.heard.append("complete")


@pytest.mark.checklist("A18")
def test_register_gives_a_handle_that_ends_it() -> None:
    dispatcher, updates = Dispatcher(), list[int]()
    handle = dispatcher.register(lambda: updates.append(1))
    assert dispatcher.has_updatables
    dispatcher.update()
    assert (updates, handle.removed) == ([1], False)
    handle.remove()
    handle.remove()
    handle.close()
    dispatcher.update()
    assert (updates, handle.disposed) == ([1], True)
    assert not dispatcher.has_updatables


@pytest.mark.checklist("A10", "A18")
def test_a_handle_is_a_context_manager_and_a_function() -> None:
    dispatcher, updates = Dispatcher(), list[int]()
    with dispatcher.register(lambda: updates.append(1)):
        dispatcher.update()
    with closing(dispatcher.register(lambda: updates.append(2))) as handle:
        dispatcher.update()
    assert handle.removed
    removed = dispatcher.register(lambda: updates.append(3))
    removed()
    dispatcher.update()
    assert updates == [1, 2]


@pytest.mark.checklist("A19")
def test_the_remover_comes_before_anything_else() -> None:
    dispatcher, recorder = Dispatcher(), Recorder()
    handle = dispatcher.register(recorder)
    assert recorder.heard == ["registered"]
    assert recorder.remover is handle
    dispatcher.update()
    handle.remove()
    dispatcher.update()
    assert recorder.heard == ["registered", "update"]


@pytest.mark.checklist("A19")
def test_an_updatable_that_removes_itself_in_on_register_is_never_registered() -> None:
    class Shy(Recorder):
        def on_register(self, remover: Removable, /) -> None:
            remover.remove()

    asked: list[int] = []
    source = Observable(flow.defer(lambda: asked.append(1) or flow.just(UPDATE)))
    shy = Shy()
    assert source.register(shy).removed
    assert (shy.heard, asked) == ([], [])


@pytest.mark.checklist("A19")
def test_take_one_is_written_with_the_injected_remover_only() -> None:
    class First(Recorder):
        def update(self) -> None:
            super().update()
            assert self.remover is not None
            self.remover.remove()

    dispatcher, first = Dispatcher(), First()
    dispatcher.register(first)
    dispatcher.update()
    dispatcher.update()
    assert first.heard == ["registered", "update"]
    assert not dispatcher.has_updatables


@pytest.mark.checklist("A19")
def test_the_remover_as_an_argument_of_each_update() -> None:
    dispatcher, updates = Dispatcher(), list[int]()

    def update(remover: Removable) -> None:
        updates.append(1)
        if len(updates) == 2:
            remover.remove()

    handle = dispatcher.register_with_remover(update)
    for _ in range(5):
        dispatcher.update()
    assert (len(updates), handle.removed) == (2, True)


@pytest.mark.checklist("A19")
def test_the_remover_works_within_a_synchronous_source() -> None:
    updates: list[int] = []

    def update(remover: Removable) -> None:
        updates.append(1)
        remover.remove()

    Observable(flow.range(100).map(lambda _: UPDATE)).register_with_remover(update)
    assert updates == [1]


@pytest.mark.checklist("A20")
def test_errors_and_the_end_are_signals() -> None:
    dispatcher, recorder, late = Dispatcher(), Recorder(), Recorder()
    handle = dispatcher.register(recorder)
    error = LookupError("why")
    dispatcher.error(error)
    assert recorder.heard == ["registered", error]
    assert recorder.heard[1] is error
    assert handle.disposed
    dispatcher.update()
    assert dispatcher.terminated
    dispatcher.register(late)
    assert late.heard == ["registered", error]


@pytest.mark.checklist("A16", "A20")
def test_functions_are_called_for_errors_and_the_end_as_well(drops: Drops) -> None:
    failing, ending, heard = Dispatcher(), Dispatcher(), list[object]()
    for source in (failing, ending):
        source.register(
            lambda: heard.append("update"),
            on_error=heard.append,
            on_complete=lambda: heard.append("complete"),
        )
    error = LookupError("why")
    ending.complete()
    failing.error(error)
    failing.complete()
    assert heard == ["complete", error]
    failing.error(error)
    assert drops.take_errors() == [error]


def test_an_error_without_a_handler_goes_to_the_hook(drops: Drops) -> None:
    dispatcher = Dispatcher()
    dispatcher.register(lambda: None)
    error = LookupError("why")
    dispatcher.error(error)
    assert drops.take_errors() == [error]

    class OnlyUpdates(Updatable):
        def update(self) -> None:
            raise AssertionError

    other = Dispatcher()
    other.register(OnlyUpdates())
    other.error(error)
    assert drops.take_errors() == [error]


def test_an_updatable_that_raises_is_removed_with_its_error_and_the_others_continue() -> None:
    dispatcher, recorder = Dispatcher(), Recorder()
    error = LookupError("mine")
    heard: list[object] = []

    def fails() -> None:
        raise error

    handle = dispatcher.register(fails, on_error=heard.append)
    dispatcher.register(recorder)
    dispatcher.update()
    dispatcher.update()
    assert (heard, handle.removed) == ([error], True)
    assert recorder.heard == ["registered", "update", "update"]


def test_functions_do_not_go_with_an_updatable_which_has_methods() -> None:
    dispatcher = Dispatcher()
    with pytest.raises(TypeError, match=r"error\(\) and complete\(\)"):
        dispatcher.register(Recorder(), on_complete=lambda: None)
    assert not dispatcher.has_updatables


def test_an_error_of_an_ending_function_goes_to_the_hook(drops: Drops) -> None:
    def fails(*_: object) -> None:
        raise LookupError("at the end")

    one, other = Dispatcher(), Dispatcher()
    one.register(lambda: None, on_complete=fails)
    other.register(lambda: None, on_error=fails)
    one.complete()
    other.error(ValueError())
    assert [str(error) for error in drops.take_errors()] == ["at the end", "at the end"]


@pytest.mark.checklist("A11")
def test_a_hundred_that_close_at_once_remove_once() -> None:
    removed: list[int] = []
    handle = Removable(lambda: removed.append(1))
    start = threading.Barrier(100)

    def close() -> None:
        start.wait()
        handle.close()

    threads = [threading.Thread(target=close) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert removed == [1]


@pytest.mark.checklist("A10", "A11")
def test_register_with_is_one_reference_for_an_observable_of_agera() -> None:
    with TestLoop() as loop:
        source, updates = observables.update_dispatcher(), list[int]()
        handle = register_with(source, lambda: updates.append(1))
        source.update()
        loop.drain()
        handle.close()
        handle.close()
        with handle:
            source.update()
        loop.drain()
        assert updates == [1]


@pytest.mark.checklist("A10", "A11")
def test_such_a_handle_may_be_closed_by_a_thread_without_a_loop() -> None:
    with TestLoop() as loop:
        source, updates = observables.update_dispatcher(), list[int]()
        handle = register_with(source, lambda: updates.append(1))
        closing = threading.Thread(target=handle.close)
        closing.start()
        closing.join()
        assert loop.pending == 1
        loop.drain()
        source.update()
        loop.drain()
        assert updates == []


def test_a_handle_that_was_removed_before_removes_what_is_attached() -> None:
    removed: list[str] = []
    handle = Removable()
    handle.remove()
    handle.attach(lambda: removed.append("late"))
    assert removed == ["late"]


def test_many_handles_as_one() -> None:
    removed: list[int] = []
    handles = Removables(Removable(lambda: removed.append(0)))
    ended = Removable()
    ended.remove()
    handles.add(ended)
    handles.add(Removable(lambda: removed.append(1)))
    assert not handles.disposed
    with handles:
        assert removed == []
    handles.remove()
    handles.dispose()
    assert (removed, handles.disposed) == ([0, 1], True)
    handles.add(Removable(lambda: removed.append(2)))
    assert removed == [0, 1, 2]


class Looked(Disposable):
    """A handle that counts how often it is asked whether it has ended."""

    looks = 0

    def __init__(self, handles: Removables | None = None) -> None:
        self.handles = handles
        self.ended = False

    @property
    def disposed(self) -> bool:
        Looked.looks += 1
        if self.handles is not None:  # no lock is held: another one may be added
            handles, self.handles = self.handles, None
            handles.add(Looked())
        return self.ended

    def dispose(self) -> None:
        self.ended = True


def test_handles_are_looked_at_now_and_then_and_those_that_have_ended_are_not_kept() -> None:
    handles, made = Removables(), [Looked() for _ in range(1000)]
    Looked.looks = 0
    for each in made:
        handles.add(each)
    assert Looked.looks < 3 * len(made)
    for each in made:
        each.ended = True
    for _ in range(3000):
        ended = Looked()
        ended.ended = True
        handles.add(ended)
    assert len(handles._handles) < 3000
    handles.add(Looked(handles))
    for _ in range(3000):
        handles.add(Looked())
    handles.remove()
    assert len(handles._handles) == 0


def test_all_of_many_handles_are_removed_though_some_of_them_raise() -> None:
    removed: list[int] = []

    def fail() -> None:
        raise LookupError("gone")

    def last() -> None:
        removed.append(1)

    with pytest.raises(LookupError, match="gone"):
        Removables(Removable(fail), Removable(last)).remove()
    with pytest.raises(ExceptionGroup, match="2 handles") as raised:
        Removables(Removable(fail), Removable(fail), Removable(last)).remove()
    assert [str(each) for each in raised.value.exceptions] == ["gone", "gone"]
    assert removed == [1, 1]


def test_it_is_a_publisher_and_what_is_not_requested_waits_as_a_number() -> None:
    dispatcher: Dispatcher = Dispatcher()
    subscriber: TestSubscriber[Signal] = TestSubscriber(0)
    dispatcher.subscribe(subscriber)
    for _ in range(1000):
        dispatcher.update()
    assert subscriber.items == []
    subscriber.request(2)
    assert subscriber.items == [UPDATE, UPDATE]
    dispatcher.complete()
    subscriber.request(2000)
    assert len(subscriber.items) == 1000
    assert subscriber.completed


def test_none_is_not_a_subscriber_an_error_or_a_value() -> None:
    nothing: Subscriber[Signal] | None = None
    dispatcher, repository = Dispatcher(), MutableRepository(0)
    for call in (
        lambda: dispatcher.subscribe(nothing),  # type: ignore[arg-type]
        lambda: dispatcher.error(None),  # type: ignore[arg-type]
        lambda: repository.error(None),  # type: ignore[arg-type]
        lambda: repository.accept(None),  # type: ignore[arg-type]
        lambda: MutableRepository(None),
    ):
        with pytest.raises(NoneItemError):
            call()


@pytest.mark.checklist("A05")
def test_the_same_subscriber_may_be_subscribed_twice_unless_it_is_strict_itself() -> None:
    class Twice:
        """A foreign subscriber: each subscription is guarded on its own (§2.12 is its affair)."""

        def __init__(self) -> None:
            self.items: list[Signal] = []

        def on_subscribe(self, subscription: Subscription, /) -> None:
            subscription.request(10)

        def on_next(self, item: Signal, /) -> None:
            self.items.append(item)

        def on_error(self, error: BaseException, /) -> None:
            raise AssertionError

        def on_complete(self) -> None:
            raise AssertionError

    dispatcher, subscriber = Dispatcher(), Twice()
    dispatcher.subscribe(subscriber)
    dispatcher.subscribe(subscriber)
    dispatcher.update()
    assert subscriber.items == [UPDATE, UPDATE]
