"""`sequence_equal`: whether two flows emit the same items."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq
from typing import Any, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.flow import Flow, check_order
from flow_core.protocols import EMPTY, CoreSubscriber, Empty, Publisher
from flow_ops.combine._sources import check_function, check_sources, described, take_errors
from flow_ops.coordination import BufferedInput, Coordinator, Input, coordinated_source

__all__ = ["sequence_equal"]

T = TypeVar("T")
U = TypeVar("U")


def sequence_equal(
    first: Publisher[T],
    second: Publisher[U],
    *,
    key: Callable[[T | U], object] | None = None,
    equals: Callable[[T, U], object] | None = None,
    prefetch: int = DEFAULT_PREFETCH,
) -> Flow[bool]:
    """Emit one item: True if both flows emit the same items and then complete, else False.

    >>> import flow_core as flow
    >>> flow.sequence_equal(flow.range(3), flow.just(0, 1, 2)).single()
    True
    >>> flow.sequence_equal(flow.just("a"), flow.just("A"), key=str.lower).single()
    True

    The result comes as soon as the flows differ; both are cancelled then.

    Demand: `prefetch` items are requested of each flow, and 75 % of that again whenever as many
    were compared. Without demand nothing is compared.
    Thread: that of the flow whose item was missing, or of the requester.
    Fusion: flows with SYNC or ASYNC are polled; an asynchronous one learns that it may be polled on
    another thread.
    Errors: the first one cancels the other flow, and overtakes the items that wait.

    Args:
        first: the flow that is subscribed first.
        second: the flow that is subscribed second.
        key: returns the value by which an item is compared.
        equals: returns something true if two items are equal; None for ``==`` of the items or keys.
            Give `key` or `equals`, not both.
        prefetch: items to request of each ahead, and the most of each that wait.

    Raises:
        TypeError: if a flow is not a publisher, `key` or `equals` cannot be called, or `prefetch`
            is not an int.
        ValueError: if `prefetch` is less than 1, or both `key` and `equals` are given.
    """
    check_sources("sequence_equal", (first, second))
    check_function("sequence_equal", "key", key)
    check_function("sequence_equal", "equals", equals)
    check_prefetch(prefetch)
    if key is not None and equals is not None:
        raise ValueError("sequence_equal() takes key= or equals=; let equals() make its own keys")
    for source in (first, second):
        check_order(source, "sequence_equal()")
    same = equals or _comparison(key)
    return coordinated_source(
        "sequence_equal",
        described(2, equals if key is None else key),
        lambda downstream, label: SequenceEqual(
            (first, second), same, downstream, label, prefetch=prefetch
        ),
        prefetch,
        (first, second),
    )


def _comparison(key: Callable[[Any], object] | None) -> Callable[[Any, Any], object]:
    if key is None:
        return eq
    return lambda left, right: key(left) == key(right)


@final
class SequenceEqual(Coordinator[bool]):
    """Runs `sequence_equal`."""

    __slots__ = ("_first", "_flows", "_hurries", "_pair", "_same", "_second")

    # Any: only the flows and the functions know the types of the items.
    def __init__(
        self,
        flows: tuple[Publisher[Any], Publisher[Any]],
        same: Callable[[Any, Any], object],
        downstream: CoreSubscriber[bool],
        label: str,
        *,
        prefetch: int,
    ) -> None:
        super().__init__(downstream, label)
        self._flows = flows
        self._same = same
        self._first: BufferedInput[Any] | None = BufferedInput(self, prefetch)
        self._second: BufferedInput[Any] | None = BufferedInput(self, prefetch)
        self._pair: list[Any | Empty] = [EMPTY, EMPTY]
        """For each flow, an item that waits for its counterpart."""
        self._hurries = False
        """True when a flow has failed and its error overtakes the items that wait."""

    @override
    def open(self) -> None:
        first, second = self._first, self._second
        if first is not None and second is not None:
            self.connect(self._flows[0], first)
            self.connect(self._flows[1], second)

    @override
    def ending(self, one: Input[Any]) -> None:
        if isinstance(one, BufferedInput) and one.error is not None:
            self._hurries = True

    @override
    def step(self) -> None:
        first, second, pair = self._first, self._second, self._pair
        while not self.over and first is not None and second is not None:
            if self._hurries:
                self._fail(first, second)
                return
            if not self.demand:
                return
            for place, one in enumerate((first, second)):
                if pair[place] is EMPTY:
                    pair[place] = one.poll()
            left, right = pair
            left_ended = left is EMPTY and first.ended()
            right_ended = right is EMPTY and second.ended()
            if (left_ended and first.error is not None) or (
                right_ended and second.error is not None
            ):
                self._fail(first, second)
            elif left_ended or right_ended:
                # If both have ended they are equal; otherwise wait for the other one.
                if left is not EMPTY or right is not EMPTY:
                    self._answer(False)
                elif left_ended and right_ended:
                    self._answer(True)
                else:
                    return
            elif left is EMPTY or right is EMPTY:
                return
            else:
                pair[:] = EMPTY, EMPTY
                if not self._same(left, right):
                    self._answer(False)

    @override
    def closed(self) -> None:
        first, second = self._first, self._second
        self._first = self._second = None
        pair, self._pair = self._pair, [EMPTY, EMPTY]
        for item in pair:
            if item is not EMPTY:
                hooks.drop_item(item)
        for one in (first, second):
            if one is not None:
                one.close()

    def _answer(self, same: bool) -> None:
        self.emit(same)
        self.complete()

    def _fail(self, *inputs: BufferedInput[Any]) -> None:
        for error in take_errors(inputs, every=False):
            self.fail(error)
