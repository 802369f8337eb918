"""The promises of Agera hold on every kind of loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from flow_rxcompat.agera import (
    BaseObservable,
    RepositoryConfig,
    TestLoop,
    ThreadLoop,
    current_loop,
    observables,
    repositories,
)
from flow_testing import Drops

Script = Callable[[], Iterator[None]]
"""Runs on the loop; posted messages are done when it continues after a ``yield``."""

TURNS = 8
"""Enough for an update, the call it makes, the flow that this starts, and its end."""


def on_a_test_loop(script: Script) -> None:
    with TestLoop() as loop:
        for _ in script():
            loop.drain()


def on_an_asyncio_loop(script: Script) -> None:
    async def main() -> None:
        for _ in script():
            for _turn in range(TURNS):
                await asyncio.sleep(0)

    asyncio.run(main())


def on_a_thread_loop(script: Script) -> None:
    with ThreadLoop() as loop:
        running = script()
        while loop.call(lambda: next(running, "over")) != "over":
            for _turn in range(TURNS):
                loop.call(lambda: None)


each_loop = pytest.mark.parametrize("run", [on_a_test_loop, on_an_asyncio_loop, on_a_thread_loop])
Run = Callable[[Script], None]


class Edges(BaseObservable):
    def __init__(self) -> None:
        super().__init__()
        self.edges = ""

    def observable_activated(self) -> None:
        self.edges += "+"

    def observable_deactivated(self) -> None:
        self.edges += "-"


def elsewhere(action: Callable[[], object]) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


@each_loop
@pytest.mark.checklist("A13", "A14")
def test_updates_of_a_turn_are_one_wherever_they_come_from(run: Run) -> None:
    def script() -> Iterator[None]:
        numbers, seen, loop = repositories.mutable_repository(0), list[object](), current_loop()
        numbers.add_updatable(lambda: seen.append((numbers.get(), current_loop() is loop)))
        numbers.accept(1)
        numbers.accept(2)
        elsewhere(lambda: numbers.accept(3))
        assert seen == []
        yield
        assert seen == [(3, True)]
        numbers.accept(4)
        yield
        assert seen == [(3, True), (4, True)]

    run(script)


@each_loop
@pytest.mark.checklist("A01")
def test_an_updatable_of_two_observables_is_called_once_a_turn(run: Run) -> None:
    def script() -> Iterator[None]:
        one, other, calls = observables.update_dispatcher(), observables.update_dispatcher(), [0]

        def update() -> None:
            calls[0] += 1

        one.add_updatable(update)
        other.add_updatable(update)
        one.update()
        other.update()
        yield
        assert calls == [1]

    run(script)


@each_loop
@pytest.mark.checklist("A01")
def test_the_edges_of_activation(run: Run) -> None:
    def script() -> Iterator[None]:
        source = Edges()

        def update() -> None:
            raise AssertionError("it was removed before")

        source.add_updatable(update)
        assert source.edges == "+"  # at once, on its own loop
        source.remove_updatable(update)
        source.add_updatable(update)
        yield
        assert source.edges == "+"  # within a turn, the removal is taken back
        source.dispatch_update()
        source.remove_updatable(update)
        yield
        assert source.edges == "+-"

    run(script)


@each_loop
@pytest.mark.checklist("A13")
def test_each_updatable_is_called_on_the_loop_from_which_it_was_added(run: Run) -> None:
    with ThreadLoop() as other:

        def script() -> Iterator[None]:
            source, seen, here = Edges(), list[object](), current_loop()
            told = threading.Event()

            def there() -> None:
                seen.append(current_loop())
                told.set()

            other.call(lambda: source.add_updatable(there))
            assert source.edges == ""  # by a message: this is another loop's
            yield
            assert source.edges == "+"
            source.add_updatable(lambda: seen.append(current_loop()))
            source.dispatch_update()
            yield
            assert told.wait(10)
            assert len(seen) == 2
            assert {here, other} == {*seen}

        run(script)


@each_loop
def test_a_computed_repository_starts_and_ends_its_flow_on_the_loop(run: Run) -> None:
    def script() -> Iterator[None]:
        with ThreadPoolExecutor(1) as pool:
            numbers, loops, here = (
                repositories.mutable_repository(1),
                list[object](),
                current_loop(),
            )
            computed = (
                repositories.repository_with_initial_value("none")
                .observe(numbers)
                .on_updates_per_loop()
                .get_from(numbers)
                .send_to(lambda _: loops.append(current_loop()))
                .go_to(pool)
                .send_to(lambda _: loops.append(current_loop()))
                .then_transform(str)
                .on_deactivation(RepositoryConfig.RESET_TO_INITIAL_VALUE)
                .compile()
            )
            seen = list[str]()

            def update() -> None:
                seen.append(computed.get())

            computed.add_updatable(update)
            pool.submit(lambda: None).result(10)  # what it was given before has run by now
            yield
            assert seen == ["1"]
            assert loops == [here, None]
            computed.remove_updatable(update)
            assert computed.get() == "1"
            yield
            assert computed.get() == "none"

    run(script)


def test_an_error_of_an_updatable_goes_to_the_handler_of_the_loop(drops: Drops) -> None:
    error, handled = LookupError("updatable"), list[object]()

    def script() -> Iterator[None]:
        source, others = observables.update_dispatcher(), list[int]()

        def fail() -> None:
            raise error

        source.add_updatable(fail)
        source.add_updatable(lambda: others.append(1))
        source.update()
        yield
        assert others == [1]  # it is a separate message

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: handled.append(context["exception"]))
        for _ in script():
            for _turn in range(TURNS):
                await asyncio.sleep(0)

    asyncio.run(main())
    assert handled == [error]
    on_a_thread_loop(script)
    assert drops.take_errors() == [error]
    with TestLoop() as loop:
        running = script()
        next(running)
        with pytest.raises(LookupError):
            loop.drain()
        loop.drain()
        assert next(running, None) is None
