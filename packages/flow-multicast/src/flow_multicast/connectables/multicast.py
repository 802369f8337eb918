"""`multicast` and its kin: connectables with a processor."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar, cast, final

from typing_extensions import override

from flow_core.errors import is_fatal
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    Disposable,
    Processor,
    Publisher,
    Subscriber,
)
from flow_core.stored import release_frames
from flow_core.subscribers import core_subscriber
from flow_multicast.connectables.atomic_reference import AtomicReference
from flow_multicast.connectables.connectable import ConnectableBase
from flow_multicast.connectables.connection import (
    Completed,
    ConditionalMember,
    Connection,
    DisconnectedError,
    Feeder,
    Member,
    State,
)
from flow_multicast.connectables.inlet import Inlet, Link

__all__ = ["MulticastConnectable"]

T = TypeVar("T")
R = TypeVar("R")


def _no_run() -> None:
    """Return None: no earlier run exists."""


class _Stage(NamedTuple, Generic[T, R]):
    """The connection for newcomers, and its state; all earlier connections have ended."""

    connection: Connection[T, R]
    state: State
    processor: Processor[T, R] | None
    """The processor for newcomers; None if they have to wait for it."""
    feeder: Feeder[T, R] | None = None
    """The feeder of the processor, while the processor runs."""


@final
class MulticastConnectable(ConnectableBase[R], Generic[T, R]):
    """Runs `source` for all subscribers, through a processor.

    Args:
        source: the flow that is run once per connection.
        factory: makes a processor for each connection. Subscribers that came before are kept, and
            served from the first item on (C19).
        processor: a processor for all connections, in place of `factory`. Subscribers go straight
            to the processor; once it has ended, they get only its end (C17).
        keeps: whether a subscriber that comes after the end still goes to the processor of the last
            run, until `reset` or the next `connect`; otherwise it waits for the next run.
        label: the operator, for messages.
        name: the operator, for statistics.
    """

    __slots__ = (
        "__weakref__",
        "_factory",
        "_fixed",
        "_inlet",
        "_keeps",
        "_label",
        "_source",
        "_stage",
        "name",
    )

    def __init__(
        self,
        source: Publisher[T],
        factory: Callable[[], Processor[T, R]] | None,
        *,
        processor: Processor[T, R] | None = None,
        keeps: bool = False,
        label: str = "multicast()",
        name: str = "multicast()",
    ) -> None:
        self._source = source
        self._factory = factory
        self._fixed = processor
        self._inlet: Inlet[T, R] | None = None if processor is None else Inlet(processor)
        self._keeps = keeps
        self._label = label
        self.name: Final = name
        """The operator with its arguments, for statistics."""
        first: Connection[T, R] = Connection(self)
        self._stage: AtomicReference[_Stage[T, R]] = AtomicReference(
            _Stage(first, State.GATHERING, processor)
        )

    @property
    def upstreams(self) -> tuple[object, ...]:
        """The source; for `flow explain`."""
        return (self._source,)

    @override
    def join(
        self,
        subscriber: Subscriber[R],
        /,
        last: Callable[[], Disposable | None] = _no_run,
    ) -> Connection[T, R]:
        downstream = core_subscriber(subscriber)
        connection, state, processor, _ = self._stage.get()
        # Items may wait in a run whose source has ended; otherwise, subscribers wait for the next
        # run.
        if state is State.OVER and not self._keeps and not _waits(processor):
            self.reset()
            connection, state, processor, _ = self._stage.get()
        if processor is not None:
            processor.subscribe(downstream)
            return connection
        member: Member[R] = (
            ConditionalMember(downstream, self, subscriber)
            if isinstance(downstream, ConditionalSubscriber)
            else Member(downstream, self, subscriber)
        )
        member.introduce()
        return self._joined(member, last)

    def _joined(self, member: Member[R], last: Callable[[], Disposable | None]) -> Connection[T, R]:
        """Have a subscriber wait for a processor, or serve it if a processor is there by now."""
        while True:
            # The member is put on the list first, and then this checks whether the list is still in
            # use: a thread that begins a run does the same in the other order.
            connection = self._stage.get().connection
            member.connection = weakref.ref(connection)
            members = connection.members
            members[member] = None
            stage = self._stage.get()
            if stage.connection.epoch == connection.epoch:
                connection = stage.connection
                if stage.processor is None:
                    break
            if members.pop(member, EMPTY) is EMPTY:
                return connection  # the thread that has begun the run serves this member
            if stage.processor is not None and stage.connection is connection:
                stage.processor.subscribe(member)
                return connection
        if member.gone:  # its cancel may have come before it was on the list
            members.pop(member, None)
        elif stage.state is State.GATHERING:
            before = last()
            if isinstance(before, Connection) and before.outcome is not None:
                # There is no run to wait for. This object has made `before`.
                over = cast("Connection[T, R]", before)
                if members.pop(member, EMPTY) is not EMPTY:
                    member.turn_away(over)
        return connection

    def leave(self, member: Member[R]) -> None:
        """Remove a waiting subscriber, because it has cancelled."""
        self._stage.get().connection.members.pop(member, None)

    @override
    def connect(self, callback: Callable[[Disposable], object] | None = None) -> Disposable:
        def begin(stage: _Stage[T, R]) -> _Stage[T, R]:
            if stage.state is State.OVER:  # kept for late subscribers
                stage = self._after(stage)
            if stage.state is not State.GATHERING:
                return stage
            return stage._replace(state=State.STARTING)

        before, stage = self._stage.update(begin)
        first = stage is not before
        del before  # so that its items are not kept while the next run fills another processor
        connection = stage.connection
        if first:
            self._start(connection, callback)
        elif callback is not None:
            callback(connection)
        return connection

    def _after(self, stage: _Stage[T, R]) -> _Stage[T, R]:
        """Return the stage that follows `stage`, whose connection has ended.

        Subscribers that still wait in `stage` continue to wait in the new one.
        """
        begun = stage.state is not State.STARTING
        later: Connection[T, R] = Connection(self, stage.connection, begun=begun)
        return _Stage(later, State.GATHERING, self._fixed)

    def _move(self, connection: Connection[T, R], *states: State) -> _Stage[T, R] | None:
        """Replace `connection`, if it is in one of `states`; return the stage that it was in."""

        def move(stage: _Stage[T, R]) -> _Stage[T, R]:
            if stage.connection is connection and stage.state in states:
                return self._after(stage)
            return stage

        before, after = self._stage.update(move)
        return None if before is after else before

    def _start(
        self, connection: Connection[T, R], callback: Callable[[Disposable], object] | None
    ) -> None:
        try:
            processor = self._made() if self._fixed is None else self._fixed
            if callback is not None:
                callback(connection)
        except BaseException:
            # The next connect() tries again (C35, C36), and code that has got this connection
            # cannot stop that one (C09).
            self._move(connection, State.STARTING)
            raise
        link = None if self._inlet is None else Link(self._inlet, connection.epoch + 1)
        feeder: Feeder[T, R] = Feeder(self, connection, link or processor)

        def run(stage: _Stage[T, R]) -> _Stage[T, R]:
            if stage.connection is not connection:
                return stage
            return _Stage(connection, State.RUNNING, processor, feeder)

        before, after = self._stage.update(run)
        # Disposed of meanwhile; the waiting subscribers were moved on (C13, C32).
        if before is after:
            return
        del before, after
        waiting = connection.members
        members = [*waiting]
        feeder.belong(members)
        for member in members:
            if waiting.pop(member, EMPTY) is not EMPTY:
                member.connection = weakref.ref(connection)
                processor.subscribe(member)
        if feeder.over:
            return  # one of these subscribers has disposed of the connection
        try:
            self._source.subscribe(feeder)
        except BaseException as error:
            if is_fatal(error):
                self.disconnect(connection, tell=False)
                raise
            feeder.on_error(error)

    def _made(self) -> Processor[T, R]:
        processor = None if self._factory is None else self._factory()
        if processor is None or not (
            hasattr(processor, "subscribe") and hasattr(processor, "on_next")
        ):
            raise TypeError(f"{self._label}: its factory gave {processor!r}, not a Processor")
        return processor

    def ended(self, connection: Connection[T, R], end: BaseException | Completed | None) -> None:
        """Note that the run has ended; `end` is None if its processor has stopped the run."""
        current, state, processor, _ = self._stage.get()
        if current is not connection or state is not State.RUNNING:
            return
        connection.close(end or DisconnectedError(f"{self._label}: its processor stopped"))
        if self._keeps or (end is not None and _waits(processor)):
            self._stage.update(
                lambda stage: (
                    stage._replace(state=State.OVER, feeder=None)
                    if stage.connection is connection and stage.state is State.RUNNING
                    else stage
                )
            )
        else:
            self._move(connection, State.RUNNING)

    def told(self, connection: Connection[T, R]) -> None:
        """Drop the processor, which has got the end, unless items still wait in it (C06)."""
        if isinstance(connection.outcome, BaseException):
            connection.trace = release_frames(connection.outcome)
        stage = self._stage.get()
        if stage.connection is connection and not self._keeps and not _waits(stage.processor):
            del stage
            self._move(connection, State.OVER)

    @override
    def kept(self) -> Disposable | None:
        stage = self._stage.get()
        return stage.connection if stage.state is State.OVER else None

    def state_of(self, connection: Connection[T, R]) -> State:
        """Return the state of a connection of this object."""
        stage = self._stage.get()
        return stage.state if stage.connection is connection else State.OVER

    @override
    def detach(self, connection: Disposable) -> Callable[[], object]:
        if not isinstance(connection, Connection):
            return connection.dispose
        ours = cast("Connection[T, R]", connection)  # made by this object
        return _nothing if self._move(ours, State.OVER) is not None else self._detach(ours)

    def disconnect(self, connection: Connection[T, R], *, tell: bool = True) -> None:
        """Cancel the source of a connection, unless that source has ended.

        Args:
            connection: a connection of this object.
            tell: whether the connection's subscribers get an error, if it has its own processor.
        """
        self._detach(connection, tell=tell)()

    def _detach(self, connection: Connection[T, R], *, tell: bool = True) -> Callable[[], object]:
        current, state, _, _ = self._stage.get()
        if current is not connection or state in {State.OVER, State.GATHERING}:
            return _nothing
        error = DisconnectedError(
            f"{self._label}: its connection was disposed of while the source ran"
        )
        connection.close(error)
        # Another thread may have closed it, but not have come to this line yet.
        before = self._move(connection, State.STARTING, State.RUNNING)
        feeder = None if before is None else before.feeder
        if feeder is None:
            return _nothing
        told = error if tell and self._fixed is None else None
        return lambda: feeder.disconnect(told)

    @override
    def current(self, connection: Disposable) -> Disposable:
        if not isinstance(connection, Connection):
            return connection
        ours = cast("Connection[T, R]", connection)  # made by this object
        stage = self._stage.get()
        same = stage.connection.epoch == ours.epoch
        waits = stage.state is not State.GATHERING or bool(ours.members)
        return stage.connection if same and waits else ours

    @override
    def run(self, connection: Disposable) -> object:
        return connection.epoch if isinstance(connection, Connection) else connection

    @override
    def reset(self) -> None:
        self._move(self._stage.get().connection, State.OVER)

    @override
    def statistics(self) -> Statistics:
        return self.statistics_of(self._stage.get().connection)

    def statistics_of(self, connection: Connection[T, R]) -> Statistics:
        """Return the statistics of one connection; see `Connectable.statistics`."""
        current, state, processor, feeder = self._stage.get()
        members = [*connection.members]
        if current is not connection:
            state, members, processor, feeder = State.OVER, [], None, None
        waiting = [member.subscriber for member in members]
        found = processor.statistics() if isinstance(processor, Scannable) else None
        # Other processors need not have statistics.
        told = found or Statistics(operator="")
        return Statistics(
            operator=repr(self),
            requested=told.requested or 0,
            buffered=told.buffered,
            capacity=told.capacity,
            terminated=state is State.OVER,
            upstream=None if feeder is None else feeder.upstream,
            inners=() if processor is None else (processor,),
            subscribers=told.subscribers,
            held_back_by=tuple(_who(one) for one in told.held_back_by),
            waiting=tuple(one for one in waiting if one is not None),
            connected=state is State.RUNNING,
        )

    def __repr__(self) -> str:
        return self._label


def _who(subscriber: object) -> object:
    """Return the user's subscriber, also for one that came before there was a processor."""
    if isinstance(subscriber, Member):
        member = cast("Member[object]", subscriber)  # of any type of items
        return member.subscriber or member
    return subscriber


def _waits(processor: object) -> bool:
    """Return whether items wait in a processor until subscribers get them (C06)."""
    found = processor.statistics() if isinstance(processor, Scannable) else None
    if found is None or not found.buffered:
        return False
    return not found.terminated or found.connected is False


def _nothing() -> None:
    pass
