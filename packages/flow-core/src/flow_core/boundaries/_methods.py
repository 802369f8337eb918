"""The methods of `Flow` that add a boundary of the core."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from flow_core.boundaries._contexts import CAPTURE, context_write
from flow_core.boundaries._hidden import HIDE
from flow_core.boundaries._local import LOCAL
from flow_core.stages._fluent import Fluent

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["Bounding"]

T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")


class Bounding(Fluent[T_co], Generic[T_co]):
    """The methods that add a boundary of the core behind this flow."""

    __slots__ = ()

    def hide(self) -> Flow[T_co]:
        """The same flow behind a boundary that hides it: its neighbours find nothing to fuse with.

        >>> import flow_core as flow
        >>> list(flow.range(3).hide())
        [0, 1, 2]

        Demand: passed on. Thread: the upstream's. Fusion: none.
        """
        return self._pipe(HIDE)

    def local(self) -> Flow[T_co]:
        """The same flow; the stages that follow run in this process.

        >>> import flow_core as flow
        >>> list(flow.range(3).local().map(str))
        ['0', '1', '2']

        Stages behind a DataFrame run on its cluster, and stages behind ``on_processes()`` in the
        pool. Stages behind `local` run in this process, where clients, locks and open files are. A
        flow that is in this process in any case stays as it is.

        Demand: passed on. Thread: the upstream's. Fusion: that of the upstream.
        """
        return self._pipe(LOCAL)

    def context_capture(self) -> Flow[T_co]:
        """Run everything downstream in the context that the subscriber has when it subscribes.

        >>> from contextvars import ContextVar
        >>> from threading import Thread
        >>> import flow_core as flow
        >>> user = ContextVar("user", default="guest")
        >>> def from_elsewhere(emitter):
        ...     thread = Thread(target=lambda: (emitter.next(1), emitter.complete()))
        ...     thread.start()
        ...     thread.join()
        >>> flows = flow.create(from_elsewhere), flow.create(from_elsewhere).context_capture()
        >>> token = user.set("Ada")
        >>> [made.map(lambda _: user.get()).first() for made in flows]
        ['guest', 'Ada']
        >>> user.reset(token)

        Put it where your own thread brings the items, or behind a source with several subscribers,
        such as ``share()``. Operators that change threads, or that wait, capture the context
        themselves.

        Each signal runs in a copy of the captured context (a context cannot be entered twice at a
        time): variables that a signal sets are lost when it returns. Everything upstream keeps the
        context that it runs in.

        Demand: passed on. Thread: unchanged. Fusion: none, since polled items would run in the
        context of the subscriber that polls; conditional. When the flow is iterated over, and no
        operator upstream changes the thread, this does nothing: the consumer requests the items in
        its own context.
        """
        return self._pipe(CAPTURE)

    @overload
    def context_write(self, values: Mapping[ContextVar[Any], object], /) -> Flow[T_co]: ...

    @overload
    def context_write(self, variable: ContextVar[V], value: V, /) -> Flow[T_co]: ...

    # Any: each variable has its own type, which a mapping of several cannot express.
    def context_write(
        self, values: Mapping[ContextVar[Any], object] | ContextVar[Any], /, *value: object
    ) -> Flow[T_co]:
        """Let everything upstream see these values, in the context of the subscriber.

        >>> from contextvars import ContextVar
        >>> import flow_core as flow
        >>> user = ContextVar("user", default="guest")
        >>> users = flow.range(2).map(lambda _: user.get()).context_write(user, "Ada")
        >>> list(users.map(lambda name: (name, user.get())))
        [('Ada', 'guest'), ('Ada', 'guest')]

        Everything upstream (the source and the stages, when they are subscribed to, requested from
        or cancelled) sees the context that the subscriber had when it subscribed, with the values
        added. Signals go downstream in the subscriber's context, without the values. Each call runs
        in a copy of the context: variables that a call sets are lost when it returns; only an
        iterator keeps them to its end.

        A thread that the flow has not started, such as an emitter's, has its own context.

        Demand: passed on. Thread: unchanged. Fusion: none, since polled items would run in the
        context of the subscriber that polls; conditional. If the flow is an iterator, it stays one
        when it is iterated over.

        Args:
            values: a mapping of the values by their variables; or one variable, and
            value: the value of that variable.

        Raises:
            TypeError: if `values` is neither.
        """
        return self._pipe(context_write(values, *value))
