"""The defects that the oracle finds, and those that it does not."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_core import CoreSubscriber
from flow_ops import concat_map
from flow_oracle import orders, pipelines
from flow_oracle.compare import Oracle
from flow_oracle.language import text
from flow_oracle.orders import Order
from flow_oracle.pipelines import OPERATORS, SOURCES
from flow_oracle.reducing import reduced
from flow_oracle.sampling import sample
from flow_oracle.strategies import NAMES, cases


def different(there, examples, *only, number=0):
    """The cases that differ, of a number of random ones."""
    oracle = Oracle(pipelines.run, there)
    found = []

    def check(case):
        if oracle.compare(case).difference:
            found.append(case)

    sample(cases(frozenset(only), 3), examples, number, check)
    return found


class FoundError(Exception):
    """Ends the search."""


def is_found(there, examples, operator):
    """Return whether one of `examples` random cases differs, with no other operators."""
    oracle = Oracle(pipelines.run, there)

    def check(case):
        if oracle.compare(case).difference:
            raise FoundError

    try:
        sample(cases(frozenset([operator]), 3), examples, 0, check)
    except FoundError:
        return True
    return False


def test_random_pipelines_come_to_the_same(there):
    assert [text(case) for case in different(there, 400)] == []


class Leaky(CoreSubscriber):
    """Asks for one item more than it is asked for, and does not pass cancel on."""

    def __init__(self, downstream):
        self.downstream = downstream

    def on_subscribe(self, subscription):
        self.subscription = subscription
        self.downstream.on_subscribe(self)

    def request(self, n):
        self.subscription.request(n + 1)

    def cancel(self):
        pass

    def on_next(self, item):
        self.downstream.on_next(item)

    def on_error(self, error):
        self.downstream.on_error(error)

    def on_complete(self):
        self.downstream.on_complete()


class Lifted:
    def __init__(self, source, make):
        self.source = source
        self.make = make

    def subscribe(self, subscriber):
        self.source.subscribe(self.make(subscriber))


class Uncancelled(Leaky):
    def request(self, n):
        self.subscription.request(n)


class Greedy(Leaky):
    def cancel(self):
        self.subscription.cancel()


class Silent(Greedy):
    """Loses an error."""

    def request(self, n):
        self.subscription.request(n)

    def on_error(self, error):
        self.downstream.on_complete()


class Waiting(CoreSubscriber):
    """Right as long as everything is requested at once; `late` makes of other items what it likes.

    Items that come within a later request than the first one have waited.
    """

    def __init__(self, downstream):
        self.downstream = downstream
        self.late = False
        self.before = None

    def on_subscribe(self, subscription):
        self.subscription = subscription
        self.downstream.on_subscribe(self)

    def request(self, n):
        self.subscription.request(n)
        self.late = True

    def cancel(self):
        self.subscription.cancel()

    def on_next(self, item):
        if self.late and self.before is not None:
            self.waited(item)
        else:
            self.downstream.on_next(item)
        self.before = item

    def on_error(self, error):
        self.downstream.on_error(error)

    def on_complete(self):
        self.downstream.on_complete()


class Losing(Waiting):
    """Loses an item that has waited, and asks for another one."""

    def waited(self, item):
        self.subscription.request(1)


class Repeating(Waiting):
    """Gives the item before it once more in the place of one that has waited."""

    def waited(self, item):
        self.downstream.on_next(self.before)


class Doubling(Waiting):
    """Gives an item that has waited twice, whatever was requested."""

    def waited(self, item):
        self.downstream.on_next(item)
        self.downstream.on_next(item)


class Unending(Waiting):
    """Does not say that it has completed when something has waited."""

    def waited(self, item):
        self.downstream.on_next(item)

    def on_complete(self):
        if not self.late or self.before is None:
            self.downstream.on_complete()


def lifted(make):
    return lambda self, up, given: flow.Flow(Lifted(up, make))


def behind(right, make):
    """An operator, or a source of flows, with a defect behind it."""
    return lambda *parts: flow.Flow(Lifted(right(*parts), make))


@pytest.mark.parametrize(
    ("operator", "planted"),
    [
        ("skip", lambda self, up, given, n: up.skip(n + 1)),
        ("take", lambda self, up, given, n: up.take(n + 1)),
        ("take_last", lambda self, up, given, n: up.take_last(n).take(3)),
        ("distinct_until_changed", lambda self, up, given, f: up.distinct()),
        ("retry", lambda self, up, given, times: up),
        ("default_if_empty", lambda self, up, given, d: up.end_with(d)),
        ("count", lambda self, up, given: up.skip(1).count()),
        ("hide", lifted(Uncancelled)),
        ("hide", lifted(Greedy)),
        ("hide", lifted(Silent)),
    ],
)
def test_a_planted_defect_is_found(operator, planted, there, monkeypatch):
    monkeypatch.setitem(OPERATORS, operator, planted)
    assert is_found(there, 400, operator)


@pytest.mark.parametrize("planted", [Losing, Repeating, Doubling, Unending, Greedy, Uncancelled])
@pytest.mark.parametrize(
    "operator",
    [
        "merge",
        "merge_with",
        "flat_map",
        "group_by",
        "zip",
        "zip_with",
        "start_with",
        "concat_map_eager",
    ],
)
def test_a_defect_behind_an_operator_that_joins_flows_is_found(
    operator, planted, there, monkeypatch
):
    made = SOURCES if operator in SOURCES else OPERATORS
    monkeypatch.setitem(made, operator, behind(made[operator], planted))
    assert is_found(there, 600, operator)


@pytest.mark.parametrize("operator", ["merge", "flat_map", "group_by", "zip", "zip_with"])
def test_a_failure_that_is_lost_is_found(operator, there, monkeypatch):
    made = SOURCES if operator in SOURCES else OPERATORS
    monkeypatch.setitem(made, operator, behind(made[operator], Silent))
    assert is_found(there, 400, operator)


def test_demand_that_is_not_what_it_should_be_is_found(there, monkeypatch):
    monkeypatch.setitem(
        OPERATORS, "map", lambda self, up, given, f: up.pipe(concat_map(flow.just)).map(mapped(f))
    )
    mapped = pipelines.mapper
    assert is_found(there, 400, "map")


def test_a_case_that_differs_is_reduced_to_what_matters(there, monkeypatch):
    monkeypatch.setitem(OPERATORS, "skip", lambda self, up, given, n: up.skip(n + 1))
    oracle = Oracle(pipelines.run, there)
    case = (
        "foreign",
        (
            "pipe",
            ("just", 1, 2, 3),
            ("map", ("add", 3)),
            ("skip", 1),
            ("concat_with", ("pipe", ("range", 0, 5))),
        ),
        ("demand", 2**63 - 1, 1, 0, 3, 4, 2**63 - 1),
    )
    made = reduced(case, lambda part: bool(oracle.compare(part).difference))
    assert names_of(made) == ["skip"]
    assert len(made[2]) == 5


def names_of(case):
    return [operator[0] for operator in case[1][2:]]


@pytest.mark.parametrize(
    ("ours", "difference"),
    [
        (["subscribed", "request 1", "next 1", "complete"], ""),
        (["subscribed", "request 1", "next 2", "complete"], "items"),
        (["subscribed", "request 1", "next 1"], "the end"),
        (["subscribed", "request 1", "next 1", "error user1"], "the end"),
        (["subscribed", "request 1", "next 1", "complete", "complete"], "a second end"),
        (["subscribed", "request 1", "complete", "next 1"], "an item after the end"),
        (["subscribed", "request 1", "next 1", "next 1"], "more than was requested"),
        (
            ["0 subscribe", "subscribed", "request 1", "0 request 1", "next 1", "complete"],
            "source 0 is left running",
        ),
    ],
)
def test_traces_are_compared(ours, difference):
    theirs = ["subscribed", "request 1", "next 1", "complete"]
    oracle = Oracle(lambda case: ours, lambda case: theirs)
    case = ("core", ("pipe", ("zip", ("list",), 1)), ("demand", 1, 0, 0, "cancel"))
    assert oracle.compare(case).difference == difference


MOST = 2**63 - 1
MERGED = ["subscribed", "request 1", "next 1", f"request {MOST}", "next 2", "next 3", "complete"]
"""Of a merge, where another order there is a decision."""
ELSEWHERE = ["subscribed", "request 1", "next 1", f"request {MOST}", "next 3", "next 2", "complete"]
AT_ONCE = ["subscribed", f"request {MOST}", "next 1", "next 2", "next 3", "complete"]


def compared(here, elsewhere=ELSEWHERE, end="complete"):
    """Return the verdict on a merge that does `here` when one item is requested, then all."""
    case = (
        "core",
        ("pipe", ("merge", 2, 2, probe(1, 2, end=end), probe(3))),
        ("demand", 1, 0, 0, MOST),
    )
    both = [
        lambda run, made=made: made if run[2][1] == 1 else AT_ONCE for made in (here, elsewhere)
    ]
    return Oracle(*both).compare(case)


def probe(*items, end="complete"):
    return ("pipe", ("probe", end, 0, ("items", *items)))


def test_another_order_is_decided():
    made = compared(MERGED)
    assert made.difference == ""
    assert made.decided == {"first-come-first-served"}


@pytest.mark.parametrize(
    ("here", "difference"),
    [
        ([*MERGED[:3], *MERGED[4:], MERGED[3]], "more than was requested"),
        ([*MERGED, "next 3"], "an item after the end"),
        ([*MERGED, "complete"], "a second end"),
        ([*MERGED[:2], "raised KeyError:boom"], "raised KeyError:boom"),
        (["0 subscribe", *MERGED], "source 0 is left running"),
        ([*MERGED[:4], "cancel", "next 2"], "a signal after cancel"),
        ([*MERGED[:4], "cancel", "complete"], "a signal after cancel"),
        ([*MERGED[:5], "complete"], "items"),
        ([*MERGED[:5], "next 2", "complete"], "items that are not there"),
        (MERGED[:4], "items"),
        (MERGED[:-1], "the end"),
        ([*MERGED[:-1], "error user1"], "the end"),
        (["too long"], "only one side ends"),
    ],
)
def test_no_decision_excuses_what_is_broken(here, difference):
    assert compared(here).difference == difference


def test_no_decision_excuses_a_failure_that_is_lost():
    failed = [*ELSEWHERE[:-1], "error user1"]
    assert compared(failed, failed, ("error", 1)).difference == ""
    assert compared(MERGED, failed, ("error", 1)).difference == "the end"


def zipped(second):
    """Return the verdict on a zip that completes where RxJava's fails, as the healthy one does."""
    case = (
        "core",
        ("pipe", ("zip", ("list",), 2, ("pipe", ("iterable", ("error", 1), ("items", 1))), second)),
        ("demand", 1, 0, 0, MOST),
    )
    begin = ["subscribed", "request 1", "next [1,1]", f"request {MOST}"]

    def here(run):
        first, other = run[1][1][3:]
        return begin if "never" in first[1] and other == probe(1, 2) else [*begin, "complete"]

    def there(run):
        return [*begin, "error user1" if "error" in str(run) else "complete"]

    return Oracle(here, there).compare(case)


def test_a_failure_may_be_missing_only_if_silence_in_its_place_changes_nothing():
    assert zipped(probe(1)).difference == ""
    assert zipped(probe(1)).decided == {"not-asked-ahead-of-the-others"}
    assert zipped(probe(1, 2)).difference == "a failure that is lost"


def test_of_all_operators_it_is_known_whether_the_order_matters():
    told = [name for names in orders.OPERATORS for name in names]
    assert sorted(told) == sorted(NAMES)


@pytest.mark.parametrize(
    ("pipe", "known"),
    [
        (probe(1, 2), Order.FIXED),
        (("pipe", ("zip", ("list",), 2, probe(1), probe(2)), ("scan", ("sum",))), Order.FIXED),
        (("pipe", ("merge", 2, 2, probe(1), probe(2)), ("map", ("add", 1))), Order.ANY),
        (("pipe", ("merge", 2, 2, probe(1), probe(2)), ("take", 1)), Order.COUNT),
        (
            ("pipe", ("merge", 2, 2, probe(1), probe(2)), ("take", 1), ("filter", ("less", 1))),
            Order.UNKNOWN,
        ),
        (("pipe", ("amb", probe(1), probe(2))), Order.UNKNOWN),
        (("pipe", ("zip", ("list",), 2, probe(1), ("pipe", ("amb", probe(1))))), Order.UNKNOWN),
        (("pipe", ("just", 1), ("group_by", ("number",), 1, 128)), Order.ANY),
        (("pipe", ("just", 1), ("group_by", ("number",), 1, 128, ("take", 1))), Order.UNKNOWN),
        (("pipe", ("just", 1), ("publish", 1, ("on_backpressure_drop",))), Order.UNKNOWN),
        (("pipe", ("error", 1), ("on_error_return", 1)), Order.UNKNOWN),
    ],
)
def test_the_known_order_of_items_follows_from_the_operators(pipe, known):
    assert orders.order(("core", pipe, ("demand", 1, 0, 0, MOST))) is known
