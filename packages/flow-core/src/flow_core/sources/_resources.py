"""`using`: a flow of a resource that is released when the flow has ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, final, overload

from typing_extensions import override

from flow_core.conversion import Convertible, as_flow
from flow_core.errors import add_note, is_fatal, throw_if_fatal
from flow_core.flow import Flow
from flow_core.protocols import Subscriber
from flow_core.sources._calls import subscribe_resolved
from flow_core.stages._template import describe, refuse_coroutine_function
from flow_core.structure import DeferredSource

__all__ = ["using"]

T = TypeVar("T")
A = TypeVar("A")


@final
class UsingSource(DeferredSource[T]):
    """The flow of a resource; each subscriber gets a new resource."""

    __slots__ = ("_cleanup", "_eager", "_resource", "_use")

    def __init__(
        self,
        resource: Callable[[], Any],  # Any: what the typed `using` has checked
        use: Callable[[Any], Convertible[T]],
        cleanup: Callable[[Any], object] | None,
        eager: bool,
    ) -> None:
        self._resource = resource
        self._use = use
        self._cleanup = cleanup
        self._eager = eager

    def resolve(self) -> Flow[T]:
        """Return the flow for one subscriber, made of a new resource."""
        resource = self._resource()
        cleanup = self._cleanup
        if cleanup is not None:
            lease = _Lease(lambda _: cleanup(resource))
        else:
            manager: AbstractContextManager[Any, Any] = resource  # Any: see __init__
            if not isinstance(manager, AbstractContextManager):
                raise TypeError(
                    f"{self!r}: {resource!r} is not a context manager; say how it is released by "
                    "using(resource, use, cleanup)"
                )
            resource = manager.__enter__()
            lease = _Lease(lambda error: _exit(manager, error))
        try:
            flow = as_flow(self._use(resource), f"{self!r}: {describe(self._use)}")
        except BaseException as error:
            lease.release_after(error)
            raise
        if self._eager:
            flow = flow.do_on_error(lease.failed).do_on_complete(lease.close)
        else:
            flow = flow.do_on_error(lease.remember)
        return flow.finally_action(lease.close)

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        subscribe_resolved(self, subscriber)

    def __repr__(self) -> str:
        return f"using({describe(self._resource)}, {describe(self._use)})"


@final
class _Lease:
    """Releases a resource once, whichever call comes first: `list.pop` is atomic."""

    __slots__ = ("_error", "_release")

    def __init__(self, release: Callable[[BaseException | None], object]) -> None:
        self._release = [release]
        self._error: BaseException | None = None

    def close(self) -> None:
        """Release the resource, unless it was released."""
        self.failed(self._error)

    def failed(self, error: BaseException | None) -> None:
        """Release the resource, because of `error`."""
        self._error = None
        try:
            release = self._release.pop()
        except IndexError:
            return
        release(error)

    def remember(self, error: BaseException) -> None:
        """Note that the resource will be released later, because of `error`."""
        self._error = error

    def release_after(self, error: BaseException) -> None:
        """Release the resource while `error` is being raised.

        If the release fails, too, both errors are raised, as an ExceptionGroup.
        """
        try:
            self.failed(error)
        except Exception as raised:
            throw_if_fatal(raised)
            if isinstance(error, Exception) and not is_fatal(error):
                raise ExceptionGroup(
                    "a resource could not be used, nor released", [error, raised]
                ) from None
            add_note(error, f"its resource could not be released: {raised!r}")


def _exit(
    manager: AbstractContextManager[Any, Any],  # Any: see UsingSource
    error: BaseException | None,
) -> None:
    if error is None:
        manager.__exit__(None, None, None)
    else:
        manager.__exit__(type(error), error, error.__traceback__)


@overload
def using(
    # Any: the result says whether it suppresses errors.
    resource: Callable[[], AbstractContextManager[A, Any]],
    use: Callable[[A], Convertible[T]],
    *,
    eager: bool = ...,
) -> Flow[T]: ...


@overload
def using(
    resource: Callable[[], A],
    use: Callable[[A], Convertible[T]],
    cleanup: Callable[[A], object],
    *,
    eager: bool = ...,
) -> Flow[T]: ...


def using(
    resource: Callable[[], Any],  # Any: see the overloads
    use: Callable[[Any], Convertible[T]],
    cleanup: Callable[[Any], object] | None = None,
    *,
    eager: bool = True,
) -> Flow[T]:
    """The items of ``use(resource())``; the resource is released when the flow has ended.

    >>> from contextlib import contextmanager
    >>> from flow_core import from_iterable
    >>> @contextmanager
    ... def connection():
    ...     print("open")
    ...     yield ["a", "b"]
    ...     print("close")
    >>> handle = using(connection, from_iterable).subscribe(print)
    open
    a
    b
    close

    The resource is released exactly once: when the flow completes, fails or is cancelled.

    Demand: that of the flow that `use` returns. Thread: the resource is made in the subscriber's
    thread; it is released in the thread that sends the terminal, or in the one that cancels or that
    was delivering an item then.
    Fusion: SYNC if that flow grants it, but not across threads, because `cleanup` would move to the
    other thread.

    Args:
        resource: returns the resource; called once per subscriber, when it subscribes. The resource
            is a context manager, which is entered, or anything else with a `cleanup`.
        use: called with the resource, or with the result of entering the context manager; returns a
            flow. If `resource` or `use` raises an error, the flow fails with it.
        cleanup: releases the resource. Without it, the context manager is left, with the flow's
            error if there is one; the context manager cannot suppress that error.
        eager: if True, the resource is released before the subscriber gets on_complete or on_error,
            so an error of the release is the flow's error (in an ExceptionGroup with the flow's own
            error, if it has failed). If False, it is released after that signal, and an error of
            the release goes to the dropped-errors hook. After a cancel, such an error always goes
            there.

    Returns:
        A flow. It fails with TypeError if `use` does not return a flow, or if there is no `cleanup`
        and the resource is not a context manager.
    """
    for function in (resource, use, cleanup):
        refuse_coroutine_function(
            "using", function, "using_when() takes async context managers, and awaits them"
        )
    source: UsingSource[T] = UsingSource(resource, use, cleanup, eager)
    return Flow(source)
