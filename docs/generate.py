"""Write pages from the registry, checked against running objects, and from the table of names.

    python docs/generate.py            write operators.md, fusion-matrix.md and rxpy.md
    python docs/generate.py --check    fail if a page is not what would be written

Every operator and source that the packages in `PACKAGES` register is made with sample arguments and
subscribed to, with upstreams that grant each kind of fusion, by a subscriber that requests each.
If a record says something else than what then happens, that is an error. A new operator appears
by itself; it needs a line in `SAMPLES` if its arguments do not follow from the parameters' types.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, final

from reactivex import Observable

import flow_core as flow
from flow_core import (
    CallableSource,
    CoreSubscriber,
    Flow,
    Fusion,
    ScalarSource,
    Subscription,
    hints,
)
from flow_core.plugins import Kind, OperatorSpec, PluginHost, SourceSpec
from flow_core.structure import AbsorbingSource, DeferredSource, source_of
from flow_multicast import MulticastProcessor
from flow_testing import VirtualClock
from flow_testing.facts import Facts, Fusable, differences, facts_of, grants, together

PACKAGES: Final = ("flow-core", "flow-cli", "flow-ops", "flow-multicast")
PROCESSORS: Final = ("flow_multicast",)
"""Modules whose public processors are in the matrix: they are not records of the registry."""

FOLDER: Final = Path(__file__).parent

_AnyFlow = Flow[Any]  # Any: the items do not matter
_Args = tuple[Any, ...]


def anything(*_: object) -> Any:  # Any: it stands for every function
    """Stand for every function argument: fusion is negotiated before any function is called."""
    return 1


async def awaited(*_: object) -> int:
    """Stand for every coroutine function, as `anything` does for functions."""
    return 1


def inline(task: Callable[[], object]) -> None:
    """Run a task at once, as an executor."""
    task()


class Through(CoreSubscriber[Any]):
    """A subscriber in between, with its own subscription: a sample for `lift`."""

    def __init__(self, downstream: CoreSubscriber[Any]) -> None:
        self._downstream = downstream
        self._upstream: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        self._downstream.on_subscribe(self)

    def on_next(self, item: Any, /) -> None: ...

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self) -> None: ...

    def request(self, n: int, /) -> None:
        if self._upstream is not None:
            self._upstream.request(n)

    def cancel(self) -> None: ...


SAMPLES: Final[Mapping[str, Sequence[_Args]]] = MappingProxyType(
    {
        "context_write": [({},)],
        "lift": [("sample", Through)],
        "slice": [(1, 9, 2), (None, None, 2)],
        "multicast": [(MulticastProcessor,)],
        "delay_subscription": [(flow.just(0),)],
        "do_concurrent": [(anything, 2), (awaited, 2)],
        "map_concurrent": [(anything, 2), (awaited, 2)],
        "repeat": [(2,)],  # without a number, repeating an empty flow would never end
        "repeat_until": [(lambda: True,)],
        "timeout": [(3600.0,)],
        "take_until_other": [(flow.never(),)],
        "start_with_flows": [(flow.empty(),)],
        "repeat_when": [(lambda counts: counts.take(1),)],
        "retry_when": [(lambda errors: errors.take(1),)],
        "on_backpressure_buffer": [(16,)],
        "on_processes": [(ProcessPoolExecutor(1),)],  # nothing is submitted
        # -- sources
        "range": [(3,)],
        "just": [(1,)],
        "from_iterable": [([1, 2],)],
        "from_publisher": [(source_of(flow.just(1).hide()),)],
        "error": [(ValueError("sample"),)],
        "from_future": [(Future[int](),)],
        "from_async_iterable": [(flow.range(3),)],
        "using": [(list, flow.from_iterable, list.clear)],
        "using_when": [(nullcontext, flow.just)],
        "defer": [(lambda: flow.just(1),)],
        "generate": [(list, lambda _, sink: sink.complete())],
        "amb": [(flow.just(1), flow.never())],
        "combine_latest": [(flow.just(1), flow.never())],
        "concat": [(flow.just(1), flow.just(2))],
        "fork_join": [(flow.just(1), flow.never())],
        "interval": [(3600.0,)],
        "interval_range": [(1, 3, 3600.0)],
        "merge": [(flow.just(1), flow.just(2))],
        "merge_sequential": [(flow.just(1), flow.just(2))],
        "ordered_merge": [(flow.just(1), flow.just(2))],
        "sequence_equal": [(flow.just(1), flow.just(2))],
        "timer": [(3600.0,)],
        "zip": [(flow.just(1), flow.just(2)), (flow.just(1), flow.never())],
    }
)
"""Arguments that do not follow from the parameters' types; each is one way to use the function."""

NAMED: Final[Mapping[str, Sequence[dict[str, Any]]]] = MappingProxyType(
    {"batch": [{"within": 3600.0}]}  # without a time it is a stage of the core
)
"""Keyword arguments, otherwise as `SAMPLES`."""


THEMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "transform": "Other items",
        "filtering": "Some of the items",
        "aggregate": "One item of all",
        "combining": "More items",
        "sequence": "Again, or something else",
        "combine": "Several flows",
        "group": "Groups, windows, buffers",
        "recovery": "Another end",
        "errors": "Another end",
        "effects": "Looking on",
        "progress": "Looking on",
        "methods": "Looking on",
        "lifting": "Looking on",
        "concurrency": "Many items at a time",
        "threads": "Threads",
        "parallel": "Threads",
        "time": "Time",
        "demand": "Back-pressure",
        "connectables": "Many subscribers",
    }
)
"""Headings by the module or folder of an operator, in the order of the page."""


class MismatchError(Exception):
    """The error if a record of the registry and the object that it names do not agree."""


# -- sample arguments


def _sample(parameter: inspect.Parameter) -> Any:
    """Return a value for a parameter that fits its annotation, or `Parameter.empty`."""
    kind = str(parameter.annotation)
    if "Executor" in kind or parameter.name == "executor":
        return inline
    if kind.startswith(("float", "Seconds")):
        return 3600.0
    if "Clock" in kind:
        return VirtualClock()
    if "Callable" in kind or "ErrorFilter" in kind:
        return Exception if "ErrorFilter" in kind else anything
    if kind.startswith("type["):
        return int
    if kind.startswith("Iterable"):
        return (1, 2)
    if "Publisher" in kind or kind.startswith("Flow"):
        return flow.range(3)
    simple = {
        "int": 2,
        "str": "sample",
        "FilePath": "sample",
        "bool": False,
        "int | None": 2,
        "object": 1,
        "Any": 1,
    }
    if len(kind) == 1:  # a TypeVar
        return 1
    return simple.get(kind, inspect.Parameter.empty)


def ways(name: str, factory: Callable[..., Any]) -> list[tuple[_Args, dict[str, Any]]]:
    """Return the arguments of two uses: with the required parameters only, and with all."""
    if name in NAMED:
        return [((), named) for named in NAMED[name]]
    if name in SAMPLES:
        return [(args, {}) for args in SAMPLES[name]]
    least: tuple[list[Any], dict[str, Any]] = ([], {})
    most: tuple[list[Any], dict[str, Any]] = ([], {})
    for parameter in inspect.signature(factory).parameters.values():
        value = _sample(parameter)
        needed = parameter.default is inspect.Parameter.empty
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if value is inspect.Parameter.empty:
            if not needed:
                continue
            raise MismatchError(
                f"{name}: no sample for the parameter {parameter.name!r} ({parameter.annotation}): "
                "add the arguments to SAMPLES in docs/generate.py"
            )
        for use in (least, most) if needed else (most,):
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                use[1][parameter.name] = value
            else:
                use[0].append(value)
    both = [(tuple(args), named) for args, named in (least, most)]
    return both[:1] if least == most else both


# -- the registry


@final
@dataclass(frozen=True)
class Row:
    """An operator with its record and its observed facts."""

    record: OperatorSpec
    package: str
    theme: str
    facts: tuple[Facts, ...]

    @property
    def seen(self) -> Facts:
        """The facts of all ways to use it together, in a record's terms: what is possible."""
        return together(self.facts)

    @property
    def boundary(self) -> str:
        """The cell that says whether it grants fusion across threads."""
        across = [Fusion.THREAD_BOUNDARY in facts.answers for facts in self.facts]
        return "yes" if all(across) else "without a function" if any(across) else "–"


def hosts() -> PluginHost:
    """Return the registry, independent of the environment's settings for plugins."""
    host = PluginHost({})
    there = {plugin.distribution for plugin in host.plugins}
    if missing := [package for package in PACKAGES if package not in there]:
        raise MismatchError(f"not installed: {', '.join(missing)}")
    return host


def operators(host: PluginHost) -> list[Row]:
    """Return the operators of the packages, in the order of the page, each probed."""
    rows = []
    for name, found in host.operators.items():
        if found.plugin.distribution not in PACKAGES:
            continue
        facts = tuple(_seen(host, name))
        row = Row(found.spec, str(found.plugin.distribution), _theme(found.spec), facts)
        _compare(row)
        rows.append(row)
    order = list(dict.fromkeys(THEMES.values()))
    rows.sort(key=lambda row: order.index(row.theme) if row.theme in order else len(order))
    return rows


def _seen(host: PluginHost, name: str) -> Iterator[Facts]:
    factory = host.operator(name)
    for args, named in ways(name, factory):
        yield facts_of(_applying(factory, args, named))


def _applying(
    factory: Callable[..., Any], args: _Args, named: Mapping[str, Any]
) -> Callable[[_AnyFlow], _AnyFlow]:
    def apply(upstream: _AnyFlow) -> _AnyFlow:
        made: Any = upstream.pipe(factory(*args, **named))  # Any: not all make a Flow
        if isinstance(made, Flow):
            # A source that runs stages elsewhere needs a stage to run.
            return made.map(str) if isinstance(source_of(made), AbsorbingSource) else made
        # A connectable, or parallel rails: turn them into a flow again.
        return made.auto_connect() if hasattr(made, "auto_connect") else made.sequential()

    return apply


def _theme(record: OperatorSpec) -> str:
    thing: object = record.load()
    path = thing.__module__.split(".")
    place = path[-1].lstrip("_") if path[0] == "flow_core" else path[1]
    return THEMES.get(place, place.replace("_", " ").capitalize())


def _compare(row: Row) -> None:
    """Raise an error if the record does not agree with what happened."""
    if wrong := differences(row.record, row.seen):
        raise MismatchError(wrong)


# -- the pages

HEAD: Final = "<!-- Written by docs/generate.py: change that, or the registry, and run it. -->\n"


def operators_page() -> str:
    """Return the text of operators.md."""
    host = hosts()
    rows = operators(host)
    parts = [
        "# Operators\n",
        HEAD,
        (
            "Every operator of flow-core, flow-cli, flow-ops and flow-multicast. All are methods "
            "of `Flow` but for those with †, which are arguments of `Flow.pipe`. Those with ‡ "
            "are boundaries: the loops before and after them are "
            "separate; all others are compiled into the loop of their neighbours. What a column "
            "says is tried on the running operator when this page is written.\n"
        ),
        (
            "* **back-pressure**: what becomes of demand. *Passes demand on*: of one requested "
            "item, one is requested above. *Bounded*: a few are requested ahead. *Takes all, gives "
            "on demand*: everything is requested above.\n"
            "* **fusion**: how items may be polled here instead of being pushed; *across threads* "
            "if also by another thread. The [fusion matrix](fusion-matrix.md) says more.\n"
            "* **conditional**: whether an item that is left out costs no new request.\n"
            "* **Spark**: where it runs behind `on_spark` or `from_dataframe`. *Cluster*: in each "
            "partition; what these give, a sum of each for instance, is combined in the driver, "
            "this process. *Shuffle*: so, too, and keyed results meet on the cluster. *Driver*: on "
            "the items of all partitions, as they arrive. *Refused*: it depends on an order, which "
            "partitions have not; `on_spark(session, partitions=1)`, `sort` or `hide` before it "
            "gives one. What follows a driver's operator runs there, too; `flow explain` shows "
            "it.\n"
        ),
    ]
    for theme in dict.fromkeys(row.theme for row in rows):
        parts.append(f"## {theme}\n")
        parts.append(
            _table(
                ("operator", "does", "back-pressure", "fusion", "conditional", "Spark"),
                [
                    (
                        _name(row),
                        row.record.summary,
                        row.record.backpressure.value,
                        _fusion(row.record.answers),
                        _yes(row.record.conditional),
                        row.record.placement.value,
                    )
                    for row in rows
                    if row.theme == theme
                ],
            )
        )
    parts.append("## Sources of several flows\n")
    parts.append(
        "Each is a function of `flow_core`, and a method of the first flow: `flow.zip(a, b)` is "
        "`a.zip(b)`.\n"
    )
    parts.append(
        _table(
            ("function and method", "does"),
            [
                (f"`{name}` ({found.plugin.distribution})", found.spec.summary)
                for name, found in host.sources.items()
                if found.spec.method
            ],
        )
    )
    parts.append("## Names elsewhere\n")
    parts.append(
        "What is not here has the same name everywhere, in the spelling of its language "
        "(`take_while`, `takeWhile`), or reads a file.\n"
    )
    words = hints.tables()
    elsewhere = words["elsewhere"]
    known = {row.record.name for row in rows} | set(_sources(host))
    if unknown := set(elsewhere) - known:
        raise MismatchError(f"names.toml: no such operator or source: {sorted(unknown)}")
    parts.append(
        _table(
            ("here", "RxPY", "RxJava 3", "Reactor"),
            [
                (f"`{name}`", *(f"`{other}`" if other else "–" for other in others))
                for name, others in sorted(elsewhere.items())
            ],
        )
    )
    parts.append("## Names in Python\n")
    parts.append("What is not here has the same name in itertools, aiostream or streamable.\n")
    parts.append(
        _table(
            ("there", "library", "here"),
            [
                (f"`{name}`", library, _codes(here))
                for library in ("itertools", "aiostream", "streamable")
                for name, here in words[library].items()
            ],
        )
    )
    parts.append("## Not here\n")
    ways = sorted({**words["instead"], **words["nothing"]}.items(), key=lambda way: way[0].lower())
    parts.append(_table(("elsewhere", "here"), [(_codes(name), way) for name, way in ways]))
    parts.append("## Classes and functions of modules\n")
    classes = [(_codes(name), way) for name, way in words["module"].items()]
    parts.append(_table(("elsewhere", "here"), classes))
    return "\n".join(map(_wrapped, parts))


def _codes(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


def rxpy_names() -> Iterator[tuple[str, str, str]]:
    """Yield each name of RxPY's Observable, the kind of its counterpart, and the counterpart.

    Raises:
        MismatchError: if a name has no answer.
    """
    words = hints.tables()
    without = {
        name: way
        for section in ("instead", "nothing")
        for names, way in words[section].items()
        for name in names.split(", ")
    }
    for name in sorted(name for name in {*dir(Observable), *vars(Observable())} if name[0] != "_"):
        others = [here for here, cells in words["elsewhere"].items() if name in _named_in(cells[0])]
        if name in words["nothing"]:
            yield name, "nothing", words["nothing"][name]
        elif name in without:
            yield name, "a recipe", without[name]
        elif name in words["differs"]:
            yield name, "the same name, but", words["differs"][name]
        elif hasattr(Flow, name):
            yield name, "the same", ""
        elif others:
            yield name, "another name", ", ".join(f"`{other}`" for other in others)
        else:
            raise MismatchError(f"names.toml does not say what RxPY's {name} is here")


def _named_in(cell: str) -> list[str]:
    return [name.partition("(")[0] for name in cell.split(", ")]


def rxpy_page() -> str:
    """Return the text of rxpy.md."""
    rows = list(rxpy_names())
    counts = Counter(how for _, how, _ in rows)
    summary = ", ".join(f"{count} {how}" for how, count in counts.most_common())
    parts = [
        "# RxPY's names\n",
        HEAD,
        (
            f"All {len(rows)} public names of an `Observable` of RxPY 6, and what they are on a "
            f"`Flow`: {summary}. What the examples in [migration.md](migration.md) show is the "
            "behaviour; this is about names. If you use a name that a flow does not have, the "
            "error says the same.\n"
        ),
        _table(("RxPY", "here", ""), [(f"`{name}`", how, what) for name, how, what in rows]),
    ]
    return "\n".join(map(_wrapped, parts))


def matrix_page() -> str:
    """Return the text of fusion-matrix.md."""
    host = hosts()
    rows = operators(host)
    parts = [
        "# Fusion matrix\n",
        HEAD,
        (
            "What neighbours may agree on instead of plain Reactive Streams. Every cell is what "
            "the running object has answered when this page was written; its record in the "
            "registry says the same.\n"
        ),
        (
            "* **scalar**, **callable**: of a source, whether it is a constant, or a function of "
            "no or one item; of an operator, whether it looks at such a source, and makes its "
            "own flow from it (macro-fusion).\n"
            "* **SYNC**, **ASYNC**: the modes that it grants to what follows.\n"
            "* **THREAD_BOUNDARY**: whether it grants them also to a subscriber that polls on "
            "another thread. Operators that call a user's function do not: the function stays on "
            "its thread.\n"
            "* **conditional**: whether it tells its upstream which items it dropped.\n"
            "* **front**: it polls its upstream, whatever follows. **back**: it can be polled, "
            "whatever comes before. **transitive**: it hands on what its neighbours agree on. "
            "`asks` says for which modes it asks its upstream then.\n"
        ),
        "## Sources\n",
        _table(
            ("source", "scalar", "callable", "SYNC", "ASYNC", "THREAD_BOUNDARY"),
            [
                (f"`{name}`", *_source_cells(made, answers))
                for name, (made, answers) in _sources(host).items()
            ],
        ),
        "## Processors\n",
        (
            "A processor is both: `front` is how it takes items of its upstream, the rest how it "
            "gives them to a subscriber.\n"
        ),
        _table(
            ("processor", "SYNC", "ASYNC", "THREAD_BOUNDARY", "front", "asks"), list(_processors())
        ),
        "## Operators\n",
        (
            "Of the stages of one run, compiled into one loop, the answer is that of the most "
            "careful one.\n"
        ),
    ]
    columns = ("scalar", "callable", "SYNC", "ASYNC", "THREAD_BOUNDARY", "conditional")
    parts.append(
        _table(
            ("operator", *columns, "front", "back", "transitive", "asks"),
            [_operator_cells(row) for row in rows],
        )
    )
    return "\n".join(map(_wrapped, parts))


def _wrapped(part: str) -> str:
    """Wrap running text to the page's width; leave the rest as it is."""
    if part[0] in "#<|":
        return part
    lines = (
        textwrap.fill(
            line,
            105,
            subsequent_indent="  " if line.startswith("* ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in part.splitlines()
    )
    return "".join(f"{line}\n" for line in lines)


def _operator_cells(row: Row) -> tuple[str, ...]:
    seen = row.seen
    return (
        f"`{row.record.name}`",
        _yes(seen.scalar),
        _yes(seen.callable),
        _yes(Fusion.SYNC in seen.answers),
        _yes(Fusion.ASYNC in seen.answers),
        row.boundary,
        _yes(seen.conditional),
        _yes(seen.front),
        _yes(seen.back),
        _yes(seen.transitive),
        _fusion(seen.asks),
    )


def _source_cells(made: _AnyFlow, answers: Fusion) -> tuple[str, ...]:
    source = source_of(made)
    deferred = isinstance(source, DeferredSource)
    return (
        _yes(isinstance(source, ScalarSource)),
        _yes(isinstance(source, CallableSource)),
        *(
            _yes(mode in answers)
            + (" (of the flow it makes)" if deferred and mode in answers else "")
            for mode in (Fusion.SYNC, Fusion.ASYNC, Fusion.THREAD_BOUNDARY)
        ),
    )


def _sources(host: PluginHost) -> dict[str, tuple[_AnyFlow, Fusion]]:
    """Return a flow of each source of the packages, and the fusion that such flows grant."""
    found: dict[str, tuple[_AnyFlow, Fusion]] = {}
    for name, registered in host.sources.items():
        if registered.plugin.distribution not in PACKAGES:
            continue
        record: SourceSpec = registered.spec
        args, named = ways(name, host.source(name))[0]
        makes = [_making(host.source(name), args, named)]
        answers = grants(makes)
        if answers != record.answers:
            raise MismatchError(
                f"{name}: its record says answers={record.answers!r}, but it was seen to have "
                f"{answers!r}; correct the record (or the source)"
            )
        found[name] = (makes[0](), answers)
    return found


def _making(
    factory: Callable[..., _AnyFlow], args: _Args, named: Mapping[str, Any]
) -> Callable[[], _AnyFlow]:
    return lambda: factory(*args, **named)


def _processors() -> Iterator[tuple[str, ...]]:
    for module in map(import_module, PROCESSORS):
        for name in module.__all__:
            kind = getattr(module, name)
            if not all(hasattr(kind, part) for part in ("flow", "on_subscribe", "on_next")):
                continue
            if "processor" in inspect.signature(kind).parameters:  # it wraps another processor
                kind = partial(kind, MulticastProcessor())
            asked = Fusion.NONE
            for mode in (Fusion.SYNC, Fusion.ASYNC):
                upstream = Fusable(mode)
                upstream.subscribe(kind())
                asked |= upstream.asked
            answers = grants([_flow_of(kind)])
            modes = (Fusion.SYNC, Fusion.ASYNC, Fusion.THREAD_BOUNDARY)
            yield (
                f"`{name}`",
                *(_yes(mode in answers) for mode in modes),
                _yes(bool(asked)),
                _fusion(asked),
            )


def _flow_of(processor: Callable[[], Any]) -> Callable[[], _AnyFlow]:
    return lambda: processor().flow


def _name(row: Row) -> str:
    by = "" if row.package == "flow-core" else f" ({row.package})"
    mark = "" if row.record.kind is Kind.STAGE else " ‡"
    mark += "" if row.record.method else " †"
    return f"`{row.record.name}`{mark}{by}"


def _fusion(mode: Fusion) -> str:
    modes = [part.name or "" for part in (Fusion.SYNC, Fusion.ASYNC) if part in mode]
    across = " across threads" if Fusion.THREAD_BOUNDARY in mode else ""
    return ", ".join(modes) + across if modes else "–"


def _yes(fact: bool) -> str:
    return "yes" if fact else "–"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {"operators.md": operators_page, "fusion-matrix.md": matrix_page, "rxpy.md": rxpy_page}
)


def stale() -> str:
    """Return the differences between the pages and what would be written; empty if none."""
    found = ""
    for name, make in PAGES.items():
        page = FOLDER / name
        old = page.read_text("utf-8").splitlines(True) if page.exists() else []
        diff = difflib.unified_diff(old, make().splitlines(True), f"docs/{name}", "generated", n=0)
        if text := "".join(diff):
            found += text
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or check that they are up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    try:
        if parser.parse_args(arguments).check:
            if difference := stale():
                print(difference, "These pages are not what the code says.", sep="\n")
                print("Run: python docs/generate.py")
                return 1
            return 0
        for name, make in PAGES.items():
            (FOLDER / name).write_text(make(), "utf-8")
    except MismatchError as error:
        print(f"docs/generate.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
