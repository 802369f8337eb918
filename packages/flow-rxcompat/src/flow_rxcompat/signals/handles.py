"""`Removable`: the only object that has to be kept of a registration."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, final

from typing_extensions import override

from flow_core.protocols import Disposable
from flow_rxcompat.agera.loops import current_loop, loop_needed
from flow_rxcompat.agera.protocols import Observable as AgeraObservable
from flow_rxcompat.agera.protocols import UpdatableLike

__all__ = ["Removable", "Removables", "register_with"]

_FEW: Final = 16
"""The number of handles that are kept before a check whether some have ended."""


@final
class Removable(Disposable):
    """Ends a registration: once, from any thread, however often and early `remove` is called.

    >>> handle = Removable(lambda: print("removed"))
    >>> with handle:
    ...     handle.removed
    False
    removed
    >>> handle.remove()

    It may exist before the registration that it ends: `attach` the action later. If `remove` was
    called by then, the action runs at once.

    Args:
        action: called once, when this is removed.
    """

    __slots__ = ("__weakref__", "_action", "_lock", "_removed")

    def __init__(self, action: Callable[[], object] | None = None) -> None:
        self._lock = Lock()
        self._action = action
        self._removed = False

    def attach(self, action: Callable[[], object]) -> None:
        """Call `action` when this is removed; at once if it was removed already.

        Only the action that was attached last counts.
        """
        with self._lock:
            removed = self._removed
            if not removed:
                self._action = action
        if removed:
            action()

    @property
    def removed(self) -> bool:
        """True if `remove` was called."""
        return self._removed

    @property
    @override
    def disposed(self) -> bool:
        return self._removed

    def remove(self) -> None:
        """End the registration. Calling this twice is harmless."""
        with self._lock:
            self._removed = True
            action, self._action = self._action, None
        if action is not None:
            action()

    @override
    def dispose(self) -> None:
        self.remove()

    def close(self) -> None:
        """Do the same as `remove`, for ``contextlib.closing`` and its like."""
        self.remove()

    def __call__(self) -> None:
        """Do the same as `remove`."""
        self.remove()

    def __enter__(self) -> Removable:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


@final
class Removables(Disposable):
    """Many handles as one, in place of an attribute for each.

    >>> handles = Removables()
    >>> handles.add(Removable(lambda: print("one")))
    >>> handles.add(Removable(lambda: print("two")))
    >>> handles.remove()
    one
    two
    """

    __slots__ = ("__weakref__", "_handles", "_removed", "_room")

    def __init__(self, *handles: Disposable) -> None:
        self._handles = deque(handles)
        self._room = _FEW
        self._removed = False

    def add(self, handle: Disposable, /) -> None:
        """Remove `handle` with the others; at once if they were removed already."""
        handles = self._handles
        handles.append(handle)
        if len(handles) > self._room:
            self._clear_away()
        # `remove` sets the flag before it takes the handles: one of the two sees the other.
        if self._removed:
            self.remove()

    def _clear_away(self) -> None:
        """Drop handles that have ended."""
        handles = self._handles
        for _ in range(len(handles)):
            try:
                each = handles.popleft()
            except IndexError:  # another thread removes them
                break
            if not each.disposed:
                handles.append(each)
        self._room = max(_FEW, 2 * len(handles))

    @property
    @override
    def disposed(self) -> bool:
        return self._removed

    def remove(self) -> None:
        """End all registrations. Calling this twice is harmless.

        Raises:
            BaseException: an error that a handle raises, once all are removed.
            BaseExceptionGroup: if several handles raise.
        """
        self._removed = True
        handles = self._handles
        errors: list[BaseException] = []
        while handles:
            try:
                handle = handles.popleft()
            except IndexError:  # another thread was faster
                break
            try:
                handle.dispose()
            except BaseException as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors.pop()
        if errors:
            raise BaseExceptionGroup(f"{len(errors)} handles could not be removed", errors)

    @override
    def dispose(self) -> None:
        self.remove()

    def __enter__(self) -> Removables:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register_with(observable: AgeraObservable, updatable: UpdatableLike) -> Removable:
    """Add `updatable` to an observable of Agera; the handle removes it, once, from any thread.

    If a thread without a loop removes it, the removal is done on the loop of this call of
    `register_with`.

    Raises:
        IllegalStateError: as from ``add_updatable``: if there is no loop, or `updatable` was added
            already.
    """
    loop = loop_needed("added")
    observable.add_updatable(updatable)

    def remove() -> None:
        if current_loop() is None:
            loop.post(remove)
        else:
            observable.remove_updatable(updatable)

    return Removable(remove)
