"""The methods that put a boundary of the core behind a flow."""

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
    """The methods that put a boundary of the core behind a flow."""

    __slots__ = ()

    def hide(self) -> Flow[T_co]:
        """The same flow without its identity: neighbours find nothing to fuse with.

        >>> import flow_core as flow
        >>> list(flow.range(3).hide())
        [0, 1, 2]

        Demand: passed on. Thread: the upstream's. Fusion: none.
        """
        return self._pipe(HIDE)

    def local(self) -> Flow[T_co]:
        """The same flow; from here on it runs in this process.

        >>> import flow_core as flow
        >>> list(flow.range(3).local().map(str))
        ['0', '1', '2']

        Stages behind a DataFrame run on its cluster, those behind ``on_processes()`` in the pool.
        Stages behind this run here, where clients, locks and open files are. A flow that is in this
        process anyway stays as it is.

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
        such as ``share()``. Operators that change threads, or wait, capture the context themselves.

        Each signal runs in a copy of the captured context (a context cannot be entered twice at a
        time): variables that it sets are lost when it returns. Everything above keeps the context
        that it runs in.

        Demand: passed on. Thread: unchanged. Fusion: none, since polled items would run in the
        context of the subscriber that polls; conditional. When the flow is iterated over and no
        thread is changed above it, it does nothing: the consumer requests in its own context.
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

        Everything above (sources and stages, when they are subscribed to, requested or cancelled)
        sees the context of the subscriber as it was when it subscribed, with the values. The
        signals go down in the subscriber's context again, without them. Each call runs in a copy:
        variables that it sets are lost when it returns; only an iterator keeps them to its end.

        A thread that was not started from here, such as an emitter's, has its own context.

        Demand: passed on. Thread: unchanged. Fusion: none, since polled items would run in the
        context of the subscriber that polls; conditional. Iterated over, it stays an iterator if it
        is one.

        Args:
            values: the values by their variables; or one variable, and
            value: its value.

        Raises:
            TypeError: if it is neither.
        """
        return self._pipe(context_write(values, *value))
