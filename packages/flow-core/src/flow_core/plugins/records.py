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
    "Thread",
    "TranslationSpec",
]

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
OBJECT: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
"""The form of a target: ``package.module:attribute``, with dots for nested attributes."""


class Kind(enum.Enum):
    """The ways in which an operator can be part of a flow."""

    STAGE = "stage"
    """A template, which is compiled into one loop with those of its neighbours."""
    BOUNDARY = "boundary"
    """A separate publisher, so that the loops before and after it are separate."""


class Backpressure(enum.Enum):
    """The ways in which an operator can treat demand, between the subscriber and the source."""

    PASS = "passes demand on"
    """Demand is passed to the upstream; dropped items are requested again."""
    FULL = "bounded"
    """Demand is honoured, and the upstream is asked for a bounded number of items ahead."""
    UNBOUNDED_IN = "takes all, gives on demand"
    """Everything is requested of the upstream; the downstream's demand is honoured."""
    ERROR = "fails without demand"
    """An item that was not requested fails the flow with MissingBackpressureError."""
    NONE = "ignores demand"
    """Items are sent, whether they were requested or not."""


class Thread(enum.Enum):
    """The threads on which an operator or a source gives its items."""

    SAME = "items keep their thread, or come where they are requested"
    EXECUTOR = "items come on its executor"
    CLOCK = "items come on its clock"
    """Items that do not need to wait may keep their thread."""
    LOOP = "items come in an event loop"
    """That of the subscriber, if there is one, or else that of the library."""
    WORKERS = "items come on its workers"
    """The threads, processes or tasks in which its functions run."""
    UPSTREAM = "the upstream works on its executor"
    """A source that works when it is subscribed to, or when items are requested, works there."""


class Placement(enum.Enum):
    """The places where an operator may run if its items are in partitions on a cluster."""

    CLUSTER = "cluster"
    """In each partition. The results may then be combined in the process that runs the flow."""
    SHUFFLE = "shuffle"
    """In each partition, and then where all items with one key are brought together."""
    DRIVER = "driver"
    """In the process that runs the flow, on the items of all partitions, as they arrive."""
    REFUSED = "refused"
    """Nowhere, because the result depends on the order of the items."""


@dataclass(frozen=True)
class Spec:
    """The base of all records: a name, and where the object with this name is found.

    Args:
        name: the object's name, in lower case, words joined by ``_`` or ``-``; unique among the
            records of one class.
        target: where the object is: ``package.module:attribute``, with dots for nested attributes.
            It is imported when it is used, and never just to be listed.
        summary: one line that says what the object is for, so that a user can choose.
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
        """Return the record of a function that is imported already.

        Args:
            function: its name, its place and the first line of its docstring become the name, the
                target and the summary of the record.
            facts: the other arguments of the record; also a name, target or summary to use instead
                of the function's.
        """
        said = {
            "name": function.__name__,
            "target": f"{function.__module__}:{function.__qualname__}",
            "summary": (function.__doc__ or "").strip().partition("\n")[0].replace("``", "`"),
        }
        return cls(**(said | facts))

    def load(self) -> object:
        """Import the object, and return it.

        Raises:
            PluginError: if the module of the object cannot be imported or has no such attribute.
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

    The target is a factory ``(...) -> Operator``, or a method of `Flow`, from which `load` makes
    such a factory.

    Args:
        kind: whether the operator is compiled into one loop with its neighbours.
        backpressure: how the operator treats demand.
        asks: the fusion modes that the operator asks its upstream for; with THREAD_BOUNDARY if it
            polls on another thread.
        answers: the fusion modes that the operator may grant to its downstream; with
            THREAD_BOUNDARY if it also grants them across threads (an operator that calls a user's
            function stays on its thread, and so do the operators after it, up to the next boundary
            that is not fused).
        conditional: whether the operator tells its upstream which items it has dropped
            (`try_on_next`).
        thread: on which thread the items come, if the operator decides that.
        placement: where the operator runs when the items are on a cluster. A BOUNDARY that is
            REFUSED cannot be put behind items that have no order there; for a stage, its template
            decides.
        method: the method of `Flow` that does the same, with the same arguments. If the method is
            under the name of the package, both names are joined by a dot, as in ``spark.where``.
            None if there is no such method. Only the packages that `Flow` knows have methods.
    """

    category: ClassVar[str] = "operator"

    _: KW_ONLY
    kind: Kind = Kind.BOUNDARY
    backpressure: Backpressure = Backpressure.FULL
    asks: Fusion = Fusion.NONE
    answers: Fusion = Fusion.NONE
    conditional: bool = False
    thread: Thread = Thread.SAME
    placement: Placement = Placement.DRIVER
    method: str | None = None

    def load(self) -> object:
        """Import the factory, and return it; see `Spec.load`."""
        loaded = super().load()
        if self.method and self.target == f"flow_core.flow:Flow.{self.method}":
            return _factory_of(self.method, loaded)
        return loaded


def _factory_of(
    name: str, method: Any, holder: Callable[[Any], object] | None = None
) -> Callable[..., Any]:  # Any: a method, its flow, and an Operator
    """Return a factory of the operator for a method: of `Flow`, or of what `holder` returns."""
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
        backpressure: how the source treats demand.
        answers: the fusion modes that the source may grant, with THREAD_BOUNDARY if it also grants
            them across threads.
        thread: on which thread the items come, if the source decides that.
        distributed: whether the items are on a cluster, so that stages move there (macro-fusion).
        method: the method of `Flow` that does the same with this flow as the first argument; None
            if there is no such method. Only the packages that `Flow` knows have methods.
    """

    category: ClassVar[str] = "source"

    _: KW_ONLY
    backpressure: Backpressure = Backpressure.FULL
    answers: Fusion = Fusion.NONE
    thread: Thread = Thread.SAME
    distributed: bool = False
    method: str | None = None


@final
@dataclass(frozen=True)
class SinkSpec(Spec):
    """The end of a flow: its target is a factory ``(...) -> Operator`` whose result is not a flow.

    Args:
        backpressure: how the sink requests items: FULL in bounded batches, UNBOUNDED_IN all at
            once.
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
        options: which of ``master``, ``remote`` and ``spool`` the engine supports; the others are
            refused.
    """

    category: ClassVar[str] = "engine"

    _: KW_ONLY
    options: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class ExecutorSpec(Spec):
    """An executor for pipelines: its target is a function that makes an `Executor`.

    The function is called again for each flow that is assembled. The executor is not closed
    explicitly: like those of `concurrent.futures`, it ends when nothing refers to it any more.
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

    The module of the class registers the class, with `flow_core.register_namespace`. The record is
    for cases in which that module was not imported: lists of plugins, pipelines, and a flow on
    which the name is looked up.
    """

    category: ClassVar[str] = "namespace"

    def method(self, name: str) -> Callable[..., Any]:  # Any: an Operator
        """Return a factory of the operator for one method of the namespace.

        Args:
            name: the name of the method.

        Raises:
            PluginError: if `load` raises it, or if there is no such method.
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
        accepts: the class of the values that the function converts, as ``package.module:Class``.
            The class is looked up only among the modules that are imported already: no value of it
            can exist otherwise.
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
    """A way to run stages that look at many items, if the items are in several partitions.

    The target is a function ``(stage) -> flow_core.stages.Translation | None``. If it returns None,
    the stage, with its arguments, runs in one place.

    Args:
        template: the template of the stages, as ``package.module:TEMPLATE``. The template is looked
            up only among the modules that are imported already: no stage with it can exist
            otherwise.
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
    """Return the object that ``package.module`` or ``package.module:attribute`` names.

    This imports the module.

    Args:
        name: the name of the object.
    """
    module, _, attribute = name.partition(":")
    loaded: object = importlib.import_module(module)
    for part in attribute.split(".") if attribute else ():
        loaded = getattr(loaded, part)
    return loaded
