"""The records with which a plugin describes its objects."""

from __future__ import annotations

import enum
import functools
import importlib
import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, Self, final

from flow_core.errors import PluginError
from flow_core.operator import Operator
from flow_core.protocols import Fusion
from flow_core.signatures import signature_of

__all__ = [
    "OBJECT",
    "Backpressure",
    "ClockSpec",
    "ConverterSpec",
    "DisplaySpec",
    "EngineSpec",
    "ExecutorSpec",
    "Kind",
    "NamespaceSpec",
    "OperatorSpec",
    "Placement",
    "SinkSpec",
    "SourceSpec",
    "Spec",
    "TranslationSpec",
]

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
OBJECT: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
"""``package.module:attribute``, with dots for nested attributes."""


class Kind(enum.Enum):
    """The way in which an operator takes part in a flow."""

    STAGE = "stage"
    """A template, compiled into one loop with its neighbours."""
    BOUNDARY = "boundary"
    """A separate publisher: the loops before and after it are separate."""


class Backpressure(enum.Enum):
    """The treatment of demand on its way from the subscriber to the source."""

    PASS = "passes demand on"
    """Demand is passed to the upstream; dropped items are requested again."""
    FULL = "bounded"
    """Demand is honoured, and the upstream is asked for a bounded number of items ahead."""
    UNBOUNDED_IN = "takes all, gives on demand"
    """Everything is requested of the upstream; the downstream's demand is honoured."""
    ERROR = "fails without demand"
    """Items that were not requested fail the flow with MissingBackpressureError."""
    NONE = "ignores demand"
    """Items are sent whether they were requested or not."""


class Placement(enum.Enum):
    """The place where an operator runs if its items are in partitions on a cluster, in no order."""

    CLUSTER = "cluster"
    """In each partition. The results may be combined in the process that runs the flow."""
    SHUFFLE = "shuffle"
    """In each partition, and then where the items of a key are brought together."""
    DRIVER = "driver"
    """In the process that runs the flow, on the items of all partitions, as they arrive."""
    REFUSED = "refused"
    """Nowhere: its result depends on the order of the items."""


@dataclass(frozen=True)
class Spec:
    """The base of all records: a name, and the place of the named object.

    Args:
        name: in lower case, words joined by ``_`` or ``-``; unique among records of one class.
        target: ``package.module:attribute``, with dots for nested attributes. It is imported when
            it is used, never to list it.
        summary: one line on its purpose, for a user who chooses.
    """

    category: ClassVar[str] = "object"

    name: str
    target: str
    _: KW_ONLY
    summary: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise PluginError(
                f"{type(self).__name__}: {self.name!r} is not a name; take lower-case words joined "
                "by underscores or hyphens, such as 'observe_on'"
            )
        if not isinstance(self.target, str) or not OBJECT.fullmatch(self.target):
            raise PluginError(
                f"{type(self).__name__} {self.name!r}: {self.target!r} does not name an object; "
                "write 'package.module:attribute'"
            )

    @classmethod
    # Any: the fields of the record.
    def of(cls, function: Callable[..., object], **facts: Any) -> Self:
        """Return the record of an imported function, with its name and its docstring.

        Args:
            function: gives the name, the target, and the first line of its docstring as summary.
            facts: all other arguments of the record, and those of the three that differ.
        """
        said = {
            "name": function.__name__,
            "target": f"{function.__module__}:{function.__qualname__}",
            "summary": (function.__doc__ or "").strip().partition("\n")[0].replace("``", "`"),
        }
        return cls(**(said | facts))

    def load(self) -> object:
        """Import the object.

        Raises:
            PluginError: if its module cannot be imported or has no such attribute.
        """
        try:
            return load_object(self.target)
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"{self.category} {self.name!r} cannot be loaded from {self.target}: "
                f"{type(error).__name__}: {error}"
            ) from error


@final
@dataclass(frozen=True)
class OperatorSpec(Spec):
    """An operator for `Flow.pipe`.

    Its target is a factory ``(...) -> Operator``, or a method of `Flow`, from which `load` makes
    one.

    Args:
        kind: whether it is compiled into its neighbours' loop.
        backpressure: how it treats demand.
        asks: the fusion modes it asks its upstream for; with THREAD_BOUNDARY if it polls on
            another thread.
        answers: the fusion modes it may grant to its downstream; with THREAD_BOUNDARY if also
            across threads (operators that call a user's function stay on their thread; so do those
            that follow, up to the next boundary that takes no part).
        conditional: whether it tells its upstream which items it dropped (`try_on_next`).
        placement: where it runs when the items are on a cluster. A BOUNDARY that is REFUSED cannot
            be put behind items that have no order there; a stage has its template.
        method: the method of `Flow` that does the same, with the same arguments; with a dot if it
            is under the name of the package, such as ``spark.where``; None if there is none. Only
            the packages that `Flow` knows have methods.
    """

    category: ClassVar[str] = "operator"

    _: KW_ONLY
    kind: Kind = Kind.BOUNDARY
    backpressure: Backpressure = Backpressure.FULL
    asks: Fusion = Fusion.NONE
    answers: Fusion = Fusion.NONE
    conditional: bool = False
    placement: Placement = Placement.DRIVER
    method: str | None = None

    def load(self) -> object:
        """Import the factory; see `Spec.load`."""
        loaded = super().load()
        if self.method and self.target == f"flow_core.flow:Flow.{self.method}":
            return _factory_of(self.method, loaded)
        return loaded


def _factory_of(
    name: str, method: Any, holder: Callable[[Any], object] | None = None
) -> Callable[..., Any]:  # Any: a method, its flow, and an Operator
    """Return a factory of the operator for a method: of `Flow`, or of the result of `holder`."""
    signature = signature_of(method)
    signature = signature.replace(parameters=list(signature.parameters.values())[1:])

    @functools.wraps(method)
    def factory(*args: Any, **options: Any) -> Operator[Any, Any]:
        signature.bind(*args, **options)

        def apply(flow: Any) -> Any:
            return getattr(flow if holder is None else holder(flow), name)(*args, **options)

        return Operator(name, apply)

    vars(factory)["__signature__"] = signature
    return factory


@final
@dataclass(frozen=True)
class SourceSpec(Spec):
    """A source: its target is a factory ``(...) -> Flow``.

    Args:
        backpressure: how it treats demand.
        answers: the fusion modes it may grant, with THREAD_BOUNDARY if also across threads.
        distributed: whether its items are on a cluster, so that stages move there (macro-fusion).
        method: the method of `Flow` that does the same with the flow as the first argument; None
            if there is none. Only the packages that `Flow` knows have methods.
    """

    category: ClassVar[str] = "source"

    _: KW_ONLY
    backpressure: Backpressure = Backpressure.FULL
    answers: Fusion = Fusion.NONE
    distributed: bool = False
    method: str | None = None


@final
@dataclass(frozen=True)
class SinkSpec(Spec):
    """The end of a flow: its target is a factory ``(...) -> Operator`` whose result is not a flow.

    Args:
        backpressure: how it requests: FULL in bounded batches, UNBOUNDED_IN everything at once.
        method: see `OperatorSpec`.
    """

    category: ClassVar[str] = "sink"

    _: KW_ONLY
    backpressure: Backpressure = Backpressure.FULL
    method: str | None = None


@final
@dataclass(frozen=True)
class EngineSpec(Spec):
    """A place to run flows: its target is ``(options: EngineOptions) -> ContextManager[Engine]``.

    Args:
        options: which of ``master``, ``remote`` and ``spool`` it supports; others are refused.
    """

    category: ClassVar[str] = "engine"

    _: KW_ONLY
    options: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class ExecutorSpec(Spec):
    """An executor for pipelines: its target is a function that makes an `Executor`.

    It is made again for each flow that is assembled. It is not closed explicitly: it ends when
    there is no reference to it any more, like those of `concurrent.futures`.
    """

    category: ClassVar[str] = "executor"


@final
@dataclass(frozen=True)
class ClockSpec(Spec):
    """A clock for pipelines: its target is a function that returns a `Clock`."""

    category: ClassVar[str] = "clock"


@final
@dataclass(frozen=True)
class DisplaySpec(Spec):
    """A display that shows flows to people: its target is a function that returns a `Display`.

    See `flow_core.counting.Display`. All displays that are installed are used.
    """

    category: ClassVar[str] = "display"


@final
@dataclass(frozen=True)
class NamespaceSpec(Spec):
    """Methods for flows under one name: its target is a class that is called with the flow.

    The module of the class registers it, with `flow_core.register_namespace`. The record is for
    code that has not imported it: lists, pipelines, and a flow that is asked for the name.
    """

    category: ClassVar[str] = "namespace"

    def method(self, name: str) -> Callable[..., Any]:  # Any: an Operator
        """Return a factory of the operator for one of its methods.

        Args:
            name: the name of the method.

        Raises:
            PluginError: as `load` does, and if there is no such method.
        """
        loaded = self.load()
        found = None if name.startswith("_") else getattr(loaded, name, None)
        if not isinstance(loaded, type) or not callable(found):
            raise PluginError(f"the namespace {self.name!r} ({self.target}) has no {name!r}")
        return _factory_of(name, found, loaded)


@final
@dataclass(frozen=True)
class ConverterSpec(Spec):
    """A converter of an object to a flow: its target is a function ``(value) -> Flow``.

    Args:
        accepts: the class of the values, as ``package.module:Class``. It is looked up only among
            the modules that are imported already: otherwise no such value can exist.
    """

    category: ClassVar[str] = "converter"

    _: KW_ONLY
    accepts: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.accepts, str) or not OBJECT.fullmatch(self.accepts):
            raise PluginError(
                f"ConverterSpec {self.name!r}: accepts={self.accepts!r} does not name a class; "
                "write 'package.module:Class'"
            )


@final
@dataclass(frozen=True)
class TranslationSpec(Spec):
    """The way in which stages that look at many items run where these are in several partitions.

    Its target is a function ``(stage) -> flow_core.stages.Translation | None``; None leaves the
    stage, with these arguments, to one place.

    Args:
        template: the template of the stages, as ``package.module:TEMPLATE``. It is looked up only
            among the modules that are imported already: otherwise no such stage can exist.
    """

    category: ClassVar[str] = "translation"

    _: KW_ONLY
    template: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.template, str) or not OBJECT.fullmatch(self.template):
            raise PluginError(
                f"TranslationSpec {self.name!r}: template={self.template!r} does not name a "
                "template; write 'package.module:TEMPLATE'"
            )


def load_object(name: str) -> object:
    """Return the object named by ``package.module`` or ``package.module:attribute``.

    Imports the module.

    Args:
        name: the name of the object.
    """
    module, _, attribute = name.partition(":")
    loaded: object = importlib.import_module(module)
    for part in attribute.split(".") if attribute else ():
        loaded = getattr(loaded, part)
    return loaded
