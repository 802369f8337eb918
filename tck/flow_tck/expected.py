"""The result that each verification must report, test by test.

The kit reports a broken optional rule as a skipped test. So it matters which tests are skipped,
not how many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, final

__all__ = [
    "COORDINATED",
    "LOCK_STEP",
    "PROBED",
    "PROCESSOR",
    "PUBLISHER",
    "SUBSCRIBER",
    "UNICAST",
    "UNICAST_PROCESSOR",
    "Expected",
    "Result",
    "asking_for_items",
    "publisher_of",
]


@final
@dataclass(frozen=True)
class Result:
    """The result of one test.

    Args:
        status: "passed", "failed" or "skipped".
        message: Java's message about it.
        millis: the duration in milliseconds.
        stack: the Java stack trace.
        trace: the errors that Python raised and dropped during the test.
    """

    status: str
    millis: int = 0
    message: str = ""
    stack: str = ""
    trace: str = ""


@final
@dataclass(frozen=True)
class Expected:
    """The expected results of the tests of one verification.

    Args:
        tests: the number of tests in the verification.
        skipped: the tests that must be skipped.
        failed: the tests that must fail; only controls have any.
    """

    tests: int
    skipped: frozenset[str]
    failed: frozenset[str] = field(default=frozenset())

    def but(self, *, skipped: Iterable[str] = (), failed: Iterable[str] = ()) -> Expected:
        """Return a copy with more tests that must be skipped or must fail."""
        return Expected(self.tests, self.skipped.union(skipped), self.failed.union(failed))

    def differences(self, results: Mapping[str, Result]) -> list[str]:
        """Return the deviations from what is expected, one line each."""
        found: list[str] = []
        if len(results) != self.tests:
            found.append(f"{len(results)} tests have run, there should be {self.tests}")
        found += [
            f"{test} is unknown to the kit"
            for test in sorted((self.skipped | self.failed) - results.keys())
        ]
        for test, result in sorted(results.items()):
            wanted = self.wanted(test)
            if result.status != wanted:
                found.append(f"{test} should have {wanted}, but {result.status}")
        return found

    def wanted(self, test: str) -> str:
        """Return the status with which `test` must end."""
        if test in self.failed:
            return "failed"
        return "skipped" if test in self.skipped else "passed"


# Rules that cannot be tested from outside, for publishers and for subscribers: the kit has no code
# for them.

_PUBLISHER_UNTESTED: Final = frozenset(
    {
        "untested_spec106_mustConsiderSubscriptionCancelledAfterOnErrorOrOnCompleteHasBeenCalled",
        "untested_spec107_mustNotEmitFurtherSignalsOnceOnErrorHasBeenSignalled",
        "untested_spec108_possiblyCanceledSubscriptionShouldNotReceiveOnErrorOrOnCompleteSignals",
        "untested_spec109_subscribeShouldNotThrowNonFatalThrowable",
        "untested_spec110_rejectASubscriptionRequestIfTheSameSubscriberSubscribesTwice",
        "untested_spec304_requestShouldNotPerformHeavyComputations",
        "untested_spec305_cancelMustNotSynchronouslyPerformHeavyComputation",
    }
)
_PROBED_UNTESTED: Final = frozenset(
    {
        "untested_spec202_shouldAsynchronouslyDispatch",
        "untested_spec204_mustConsiderTheSubscriptionAsCancelledInAfterRecievingOnCompleteOrOnError",
        "untested_spec206_mustCallSubscriptionCancelIfItIsNoLongerValid",
        "untested_spec207_mustEnsureAllCallsOnItsSubscriptionTakePlaceFromTheSameThreadOrTakeCareOfSynchronization",
        "untested_spec211_mustMakeSureThatAllCallsOnItsMethodsHappenBeforeTheProcessingOfTheRespectiveEvents",
        "untested_spec212_mustNotCallOnSubscribeMoreThanOnceBasedOnObjectEquality_specViolation",
        "untested_spec213_failingOnSignalInvocation",
        "untested_spec301_mustNotBeCalledOutsideSubscriberContext",
        "untested_spec310_requestMaySynchronouslyCallOnNextOnSubscriber",
        "untested_spec311_requestMaySynchronouslyCallOnCompleteOrOnError",
        "untested_spec314_cancelMayCauseThePublisherToShutdownIfNoOtherSubscriptionExists",
        "untested_spec315_cancelMustNotThrowExceptionAndMustSignalOnError",
        "untested_spec316_requestMustNotThrowExceptionAndMustOnErrorTheSubscriber",
    }
)
_UNPROBED_UNTESTED: Final = frozenset(
    {
        "untested_spec202_blackbox_shouldAsynchronouslyDispatch",
        "untested_spec204_blackbox_mustConsiderTheSubscriptionAsCancelledInAfterRecievingOnCompleteOrOnError",
        "untested_spec206_blackbox_mustCallSubscriptionCancelIfItIsNoLongerValid",
        "untested_spec207_blackbox_mustEnsureAllCallsOnItsSubscriptionTakePlaceFromTheSameThreadOrTakeCareOfSynchronization",
        "untested_spec208_blackbox_mustBePreparedToReceiveOnNextSignalsAfterHavingCalledSubscriptionCancel",
        "untested_spec211_blackbox_mustMakeSureThatAllCallsOnItsMethodsHappenBeforeTheProcessingOfTheRespectiveEvents",
        "untested_spec212_blackbox_mustNotCallOnSubscribeMoreThanOnceBasedOnObjectEquality",
        "untested_spec213_blackbox_failingOnSignalInvocation",
        "untested_spec301_blackbox_mustNotBeCalledOutsideSubscriberContext",
        "untested_spec308_blackbox_requestMustRegisterGivenNumberElementsToBeProduced",
        "untested_spec310_blackbox_requestMaySynchronouslyCallOnNextOnSubscriber",
        "untested_spec311_blackbox_requestMaySynchronouslyCallOnCompleteOrOnError",
        "untested_spec314_blackbox_cancelMayCauseThePublisherToShutdownIfNoOtherSubscriptionExists",
        "untested_spec315_blackbox_cancelMustNotThrowExceptionAndMustSignalOnError",
        "untested_spec316_blackbox_requestMustNotThrowExceptionAndMustOnErrorTheSubscriber",
    }
)

LOCK_STEP: Final = frozenset(
    {
        "optional_spec111_multicast_mustProduceTheSameElementsInTheSameSequenceToAllOfItsSubscribersWhenRequestingOneByOne",
        "optional_spec111_registeredSubscribersMustReceiveOnNextOrOnCompleteSignals",
    }
)
"""Optional tests in which one subscriber gets items although the others do not request any."""

UNICAST: Final = LOCK_STEP | {
    "optional_spec111_maySupportMultiSubscribe",
    "optional_spec111_multicast_mustProduceTheSameElementsInTheSameSequenceToAllOfItsSubscribersWhenRequestingManyUpfront",
    "optional_spec111_multicast_mustProduceTheSameElementsInTheSameSequenceToAllOfItsSubscribersWhenRequestingManyUpfrontAndCompleteAsExpected",
}
"""Optional tests with several subscribers, which some publishers do not support."""

UNICAST_PROCESSOR: Final = UNICAST | {
    "required_spec104_mustCallOnErrorOnAllItsSubscribersIfItEncountersANonRecoverableError",
    "required_mustRequestFromUpstreamForElementsThatHaveBeenRequestedLongAgo",
}
"""The same tests for processors."""

COORDINATED: Final = frozenset(
    {
        "required_spec104_mustCallOnErrorOnAllItsSubscribersIfItEncountersANonRecoverableError",
        "required_mustRequestFromUpstreamForElementsThatHaveBeenRequestedLongAgo",
        "required_exerciseWhiteboxHappyPath",
        "required_spec208_mustBePreparedToReceiveOnNextSignalsAfterHavingCalledSubscriptionCancel",
    }
)
"""The tests that a processor in lock-step fails unless it is declared as one.

The first two expect an item for one of two subscribers, the others expect the last subscriber to
cancel the upstream.
"""

PUBLISHER: Final = Expected(38, _PUBLISHER_UNTESTED)
PROCESSOR: Final = Expected(68, _PUBLISHER_UNTESTED | _PROBED_UNTESTED | LOCK_STEP)
SUBSCRIBER: Final = Expected(26, _UNPROBED_UNTESTED)
PROBED: Final = Expected(27, _PROBED_UNTESTED)

_SAME_SEQUENCE: Final = (
    "optional_spec111_multicast_mustProduceTheSameElementsInTheSameSequenceToAllOfItsSubscribers"
)
_NEEDS: Final[Mapping[str, int]] = {
    "required_createPublisher1MustProduceAStreamOfExactly1Element": 1,
    "required_createPublisher3MustProduceAStreamOfExactly3Elements": 3,
    "required_spec101_subscriptionRequestMustResultInTheCorrectNumberOfProducedElements": 5,
    "required_spec102_maySignalLessThanRequestedAndTerminateSubscription": 3,
    "stochastic_spec103_mustSignalOnMethodsSequentially": 10,
    "required_spec105_mustSignalOnCompleteWhenFiniteStreamTerminates": 3,
    "required_spec107_mustNotEmitFurtherSignalsOnceOnCompleteHasBeenSignalled": 1,
    "optional_spec111_maySupportMultiSubscribe": 1,
    "optional_spec111_registeredSubscribersMustReceiveOnNextOrOnCompleteSignals": 1,
    f"{_SAME_SEQUENCE}WhenRequestingOneByOne": 5,
    f"{_SAME_SEQUENCE}WhenRequestingManyUpfront": 3,
    f"{_SAME_SEQUENCE}WhenRequestingManyUpfrontAndCompleteAsExpected": 3,
    "required_spec302_mustAllowSynchronousRequestCallsFromOnNextAndOnSubscribe": 6,
    "required_spec303_mustNotAllowUnboundedRecursion": 2,
    "required_spec306_afterSubscriptionIsCancelledRequestMustBeNops": 3,
    "required_spec307_afterSubscriptionIsCancelledAdditionalCancelationsMustBeNops": 1,
    "required_spec309_requestZeroMustSignalIllegalArgumentException": 10,
    "required_spec309_requestNegativeNumberMustSignalIllegalArgumentException": 10,
    "optional_spec309_requestNegativeNumberMaySignalIllegalArgumentExceptionWithSpecificMessage": 10,  # noqa: E501 - so it is called
    "required_spec312_cancelMustMakeThePublisherToEventuallyStopSignaling": 20,
    "required_spec313_cancelMustMakeThePublisherEventuallyDropAllReferencesToTheSubscriber": 3,
    "required_spec317_mustSupportAPendingElementCountUpToLongMaxValue": 3,
    "required_spec317_mustSupportACumulativePendingElementCountUpToLongMaxValue": 3,
    "required_spec317_mustNotSignalOnErrorWhenPendingAboveLongMaxValue": 2**31 - 1,
}
"""The number of items the kit needs for a test; it skips a test if the publisher has fewer."""

NEEDED: Final = tuple(sorted({0, *_NEEDS.values()}))
"""The numbers of items that the kit may request from a publisher."""


def asking_for_items(*rules: str) -> frozenset[str]:
    """Return the tests of these rules in which a publisher has to send items.

    Args:
        rules: the prefixes of the tests' names.
    """
    return frozenset(test for test in _NEEDS if test.startswith(rules))


def publisher_of(most: int | None) -> Expected:
    """Return the expected results of a publisher of at most `most` items; None for any number."""
    if most is None:
        return PUBLISHER
    return PUBLISHER.but(skipped=(test for test, items in _NEEDS.items() if items > most))
