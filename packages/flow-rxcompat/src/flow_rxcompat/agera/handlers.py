"""`WorkerHandler`: the messages that observables send to a loop."""

from __future__ import annotations

import enum
import weakref
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, TypeVar, final

from flow_rxcompat.agera.loops import TAKEN_BACK, Loop, loop_needed
from flow_rxcompat.agera.protocols import UpdatableLike, called

__all__ = ["IdentityMultimap", "Message", "WorkerHandler", "worker_handler"]

K = TypeVar("K")
V = TypeVar("V")


class Message(enum.Enum):
    """The kinds of messages."""

    UPDATE = "tell the updatables of an observable"
    FIRST_ADDED = "an observable was activated"
    LAST_REMOVED = "an observable was deactivated"
    CALL_UPDATABLE = "call an updatable"
    MAYBE_START_FLOW = "start the flow of a repository"
    ACKNOWLEDGE_CANCEL = "the flow of a repository has seen that it was cancelled"


@final
class IdentityMultimap(Generic[K, V]):
    """Several values per key, both compared by identity. It takes no lock."""

    __slots__ = ("_pairs",)

    def __init__(self) -> None:
        # Keys and values are kept, so that their ids stay theirs.
        self._pairs: dict[int, tuple[K, dict[int, V]]] = {}

    def add(self, key: K, value: V) -> bool:
        """Add a pair; return whether the key is new."""
        known = self._pairs.get(id(key))
        if known is None:
            self._pairs[id(key)] = (key, {id(value): value})
            return True
        known[1][id(value)] = value
        return False

    def remove_pair(self, key: K, value: V) -> None:
        """Remove one pair, if it is there."""
        known = self._pairs.get(id(key))
        if known is not None:
            known[1].pop(id(value), None)
            if not known[1]:
                del self._pairs[id(key)]

    def remove_key(self, key: K) -> bool:
        """Remove all pairs of `key`; return whether there were any."""
        return self._pairs.pop(id(key), None) is not None


@final
class _Sent:
    """One message on its way."""

    __slots__ = ("_action", "_handler", "key", "target")

    def __init__(
        self,
        handler: WorkerHandler,
        message: Message,
        target: object,
        action: Callable[[], object],
    ) -> None:
        self._handler = handler
        self._action = action
        self.key = (message, id(target))
        self.target = target  # kept, so that its id stays its own

    def __call__(self) -> object:
        return self._action() if self._handler.arrived(self) else TAKEN_BACK


@final
class WorkerHandler:
    """Sends messages to one loop, and takes back messages that are no longer needed.

    Each loop has one handler, as long as an observable uses it. If several observables update an
    updatable in one turn, the handler calls it once.
    """

    __slots__ = ("__weakref__", "_lock", "_pending", "_scheduled", "loop")

    def __init__(self, loop: Loop) -> None:
        self.loop: Final = loop
        self._lock = Lock()
        self._pending: dict[tuple[Message, int], list[_Sent]] = {}
        self._scheduled: IdentityMultimap[object, object] = IdentityMultimap()

    def send(
        self,
        message: Message,
        target: object,
        action: Callable[[], object],
        delay_s: float = 0.0,
    ) -> None:
        """Run `action` in a later turn, unless the message is removed first.

        Args:
            message: the kind of the message.
            target: the object that the message is about.
            action: called in that turn.
            delay_s: the minimum delay, in seconds.
        """
        sent = _Sent(self, message, target, action)
        with self._lock:
            self._pending.setdefault(sent.key, []).append(sent)
        self.loop.post(sent, delay_s)

    def has(self, message: Message, target: object) -> bool:
        """Return whether a message of this kind about `target` is on its way."""
        with self._lock:
            return (message, id(target)) in self._pending

    def remove(self, message: Message, target: object) -> None:
        """Take back the messages of this kind about `target`."""
        with self._lock:
            self._pending.pop((message, id(target)), None)

    def arrived(self, sent: _Sent) -> bool:
        """Return whether `sent`, whose turn it is, was not taken back."""
        with self._lock:
            waiting = self._pending.get(sent.key)
            if waiting is None or not any(each is sent for each in waiting):
                return False
            if len(waiting) == 1:
                del self._pending[sent.key]
            else:
                waiting[:] = [each for each in waiting if each is not sent]
            return True

    def update(self, updatable: UpdatableLike, token: object) -> None:
        """Call `updatable` in a later turn, once for any number of tokens that come until then."""
        with self._lock:
            first = self._scheduled.add(updatable, token)
        if first:
            self.send(Message.CALL_UPDATABLE, updatable, lambda: self._call(updatable))

    def forget(self, updatable: UpdatableLike, token: object) -> None:
        """No longer call `updatable` because of `token`."""
        with self._lock:
            self._scheduled.remove_pair(updatable, token)

    def _call(self, updatable: UpdatableLike) -> None:
        with self._lock:
            wanted = self._scheduled.remove_key(updatable)
        if wanted:
            called(updatable, "update")()


_handlers: Final[weakref.WeakKeyDictionary[Loop, weakref.ref[WorkerHandler]]] = (
    weakref.WeakKeyDictionary()
)
_handlers_lock: Final = Lock()


def worker_handler(action: str = "created") -> WorkerHandler:
    """Return the handler of the current loop.

    Raises:
        IllegalStateError: if there is no loop; the message says which action needs one.
    """
    loop = loop_needed(action)
    with _handlers_lock:
        known = _handlers.get(loop)
        handler = None if known is None else known()
        if handler is None:
            handler = WorkerHandler(loop)
            _handlers[loop] = weakref.ref(handler)
        return handler
