"""Exceptions that a task sends to the driver, which raises them with their own classes."""

from __future__ import annotations

import itertools
import pickle
import traceback
from collections.abc import Iterator
from typing import Final

from flow_spark.errors import RemoteError, RemoteTracebackError
from flow_spark.pickling.pickles import TaskSender

__all__ = ["dump_error", "load_error", "text_of"]

_Link = tuple[bytes, str, str, list[str]]
"""One exception of a chain: pickled (or nothing), its class, its text, its notes."""

_sender: Final = TaskSender()


def dump_error(error: BaseException) -> bytes:
    """Pickle an exception with its traceback as text and with its chain, in a task."""
    text = "".join(traceback.format_exception(error))
    return pickle.dumps((text, [_dump_link(link) for link in _chain(error)]))


def load_error(payload: bytes, partition: int, task: int) -> BaseException:
    """Return the exception that `dump_error` pickled; its first cause has the remote traceback.

    Args:
        payload: the result of `dump_error`.
        partition: the partition in which the exception was raised.
        task: the task attempt that raised the exception.
    """
    text: str
    chain: list[_Link]
    text, chain = pickle.loads(payload)
    links = [_load_link(link, text) for link in chain]
    for link, cause in itertools.pairwise(links):
        link.__cause__ = cause
    links[-1].__cause__ = RemoteTracebackError(partition, task, text)
    return links[0]


def _dump_link(link: BaseException) -> _Link:
    try:
        data = _sender.dump([link])
    except Exception:
        data = b""
    name = f"{type(link).__module__}.{type(link).__qualname__}"
    return data, name, text_of(link), [str(note) for note in getattr(link, "__notes__", ())]


def _load_link(link: _Link, text: str) -> BaseException:
    data, name, message, notes = link
    try:
        loaded: object = pickle.loads(data)[0]
    except Exception:
        loaded = None
    error = loaded if isinstance(loaded, BaseException) else RemoteError(name, message, text)
    for note in notes:  # an exception with its own way of pickling may have lost them
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    return error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and its causes, as a traceback would show them."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def text_of(error: BaseException) -> str:
    """Return the text of `error`, if that does not fail."""
    try:
        return str(error)
    except Exception:
        return "(its text cannot be made)"
