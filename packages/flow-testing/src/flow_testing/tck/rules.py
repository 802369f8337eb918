"""The common part of the verifications: the mark of a rule, its needs, and waiting."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from threading import Event, Thread
from typing import Final, TypeVar, final

import pytest

from flow_testing.subscriber import TIMEOUT_S

__all__ = ["Needs", "Verification", "check", "needs_of", "rule", "stack_depth"]

V = TypeVar("V", bound="Verification")


@final
@dataclass(frozen=True)
class Needs:
    """The conditions under which a rule can be checked.

    Args:
        items: how many items the publisher must have; -1 for any number; None for no publisher with
            items.
        failing: whether the publisher must fail.
        subscribers: how many subscribers there are, at the same time or one after the other.
        independent: whether the subscribers must not wait for each other.
        cold: whether every subscriber must get all items.
        synchronous: whether signals must come on the thread that subscribes or requests.
    """

    items: int | None = None
    failing: bool = False
    subscribers: int = 1
    independent: bool = False
    cold: bool = False
    synchronous: bool = False


_NEEDS: Final[dict[str, Needs]] = {}


class Verification:
    """The base of all verifications.

    Attributes:
        timeout_s: how long to wait for expected signals, in seconds.
        quiet_s: how long to wait for signals that must not come, in seconds. 0 is enough if no
            other thread and no clock sends signals.
    """

    timeout_s: float = TIMEOUT_S
    quiet_s: float = 0.05

    def settle(self) -> None:
        """Wait until other threads send no more signals.

        By default, this waits for `quiet_s`; override it if a test can know, as with an executor of
        one thread: ``self.pool.submit(int).result()``.
        """
        if self.quiet_s > 0:
            Event().wait(self.quiet_s)

    def eventually(self, holds: Callable[[], object], otherwise: Callable[[], str]) -> None:
        """Wait until `holds` returns something true, perhaps by the work of other threads.

        Raises:
            AssertionError: with the result of `otherwise`, if that does not happen in time. If
                `quiet_s` is 0, `holds` is called only once.
        """
        deadline = time.monotonic() + self.timeout_s
        self.settle()
        while not holds():
            if self.quiet_s <= 0 or time.monotonic() >= deadline:
                raise AssertionError(otherwise())
            self.settle()

    def lacks(self, needs: Needs) -> str | None:
        """Return why a rule with these `needs` does not apply here; None if it applies."""
        return None

    def elsewhere(self, action: Callable[[], object], what: str) -> None:
        """Run `action` in another thread, and wait for its return.

        Raises:
            AssertionError: if `action` does not return in time; the message names `what`.
        """
        raised: list[BaseException] = []

        def run() -> None:
            try:
                action()
            except BaseException as error:  # raised again below
                raised.append(error)

        thread = Thread(target=run, daemon=True)
        thread.start()
        thread.join(self.timeout_s)
        check(not thread.is_alive(), f"{what} did not return within {self.timeout_s} s")
        if raised:
            raise raised[0]


def rule(
    *,
    items: int | None = None,
    failing: bool = False,
    subscribers: int = 1,
    independent: bool = False,
    cold: bool = False,
    synchronous: bool = False,
) -> Callable[[Callable[[V], None]], Callable[[V], None]]:
    """Mark a method as the test of a rule, which is skipped if the rule does not apply.

    Args:
        items: see `Needs`, which also explains the other arguments.
        failing: see `Needs`.
        subscribers: see `Needs`.
        independent: see `Needs`.
        cold: see `Needs`.
        synchronous: see `Needs`.
    """
    needs = Needs(items, failing, subscribers, independent, cold, synchronous)

    def decorate(test: Callable[[V], None]) -> Callable[[V], None]:
        @wraps(test)
        def checked(self: V) -> None:
            lack = self.lacks(needs)
            if lack is not None:
                pytest.skip(lack)
            test(self)

        _NEEDS[test.__name__] = needs
        return _marked(checked)

    return decorate


def needs_of(test: str) -> Needs:
    """Return the needs of the rule that the method named `test` checks."""
    return _NEEDS.get(test, Needs())


def check(holds: object, otherwise: str) -> None:
    """Fail with the text `otherwise` if `holds` is not true.

    Raises:
        AssertionError: with the text `otherwise`.
    """
    if not holds:
        raise AssertionError(otherwise)


def stack_depth() -> int:
    """Return the number of calls on the stack of the caller."""
    depth = 0
    frame = sys._getframe(1)
    while frame.f_back is not None:
        depth += 1
        frame = frame.f_back
    return depth


def _marked(test: Callable[[V], None]) -> Callable[[V], None]:
    # A project that has not registered the marker can run the tests all the same.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pytest.PytestUnknownMarkWarning)
        try:
            return pytest.mark.tck(test)
        except pytest.fail.Exception:  # --strict-markers
            return test
