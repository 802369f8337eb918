"""The rules of Reactive Streams 1.0.4 as classes of pytest tests: subclass one to run them.

>>> import flow_core as flow
>>> from flow_core.protocols import Publisher
>>> class TestPairs(PublisherVerification[tuple[int, int]]):
...     def create_publisher(self, count: int) -> Publisher[tuple[int, int]]:
...         return flow.range(count + 1 if count else 0).pairwise()
>>> TestPairs().test_spec101_never_sends_more_than_requested()

Each test is named after its rule, and has the mark ``tck``. This package needs pytest, which
flow_core alone does not.
"""

from importlib.util import find_spec

if find_spec("pytest") is None:
    raise ImportError("flow_testing.tck is made of pytest tests: pip install pytest")

from flow_testing.tck.operator import OperatorVerification
from flow_testing.tck.processor import ProcessorVerification
from flow_testing.tck.publisher import PublisherVerification
from flow_testing.tck.registry import (
    OperatorRecipe,
    OperatorsAsSubscribersVerification,
    OperatorsVerification,
    SourceRecipe,
    SourcesVerification,
    operator_recipes,
    recipes_of,
    without_recipe,
)
from flow_testing.tck.subscriber import SubscriberVerification
from flow_testing.tck.whitebox import SubscriberWhiteboxVerification, WhiteboxProbe

__all__ = [
    "OperatorRecipe",
    "OperatorVerification",
    "OperatorsAsSubscribersVerification",
    "OperatorsVerification",
    "ProcessorVerification",
    "PublisherVerification",
    "SourceRecipe",
    "SourcesVerification",
    "SubscriberVerification",
    "SubscriberWhiteboxVerification",
    "WhiteboxProbe",
    "operator_recipes",
    "recipes_of",
    "without_recipe",
]
