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
    """The needs of a rule.

    Args:
        items: the number of items of the publisher; -1 for any number; None for none.
        failing: a publisher that fails.
        subscribers: how many subscribers at a time, or one after the other.
        independent: the subscribers do not wait for each other.
        cold: every subscriber gets all items.
        synchronous: signals come on the thread that subscribes or requests.
    """

    items: int | None = None
    failing: bool = False
    subscribers: int = 1
    independent: bool = False
    cold: bool = False
    synchronous: bool = False


_NEEDS: Final[dict[str, Needs]] = {}


class Verification:
    """The base of the verifications.

    Attributes:
        timeout_s: seconds to wait for expected signals.
        quiet_s: seconds to wait for signals that must not come. 0 is enough if no other thread and
            no clock sends signals.
    """

    timeout_s: float = TIMEOUT_S
    quiet_s: float = 0.05

    def settle(self) -> None:
        """Wait until there are no more signals of other threads.

        By default that is `quiet_s`; override it where a test can know, as with an executor of one
        thread: ``self.pool.submit(int).result()``.
        """
        if self.quiet_s > 0:
            Event().wait(self.quiet_s)

    def eventually(self, holds: Callable[[], object], otherwise: Callable[[], str]) -> None:
        """Wait until `holds` returns a true value, maybe by the work of other threads.

        Raises:
            AssertionError: with the result of `otherwise`, if that does not happen in time. With a
                `quiet_s` of 0, `holds` is called once.
        """
        deadline = time.monotonic() + self.timeout_s
        self.settle()
        while not holds():
            if self.quiet_s <= 0 or time.monotonic() >= deadline:
                raise AssertionError(otherwise())
            self.settle()

    def lacks(self, needs: Needs) -> str | None:
        """Return why a rule with these `needs` does not apply here, or None if it does."""
        return None

    def elsewhere(self, action: Callable[[], object], what: str) -> None:
        """Run `action` in another thread, and wait for its return.

        Raises:
            AssertionError: if it does not return in time; the message names `what`.
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
    """Mark a method as the test of a rule, which is skipped where the rule does not apply.

    Args:
        items: see `Needs`, as for the others.
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
    """Return the needs of the rule that the method called `test` checks."""
    return _NEEDS.get(test, Needs())


def check(holds: object, otherwise: str) -> None:
    """Fail with the text `otherwise` unless `holds` is true.

    Raises:
        AssertionError: with the text.
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
