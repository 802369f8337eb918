"""A flow's source, and the stages between it and the next boundary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, GeneratorType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from flow_core import hooks
from flow_core.assembly import assembly_trace
from flow_core.protocols import IterableSource, Publisher
from flow_core.stages._blame import Raised
from flow_core.stages._closing import PLAIN, Gate, closer_of
from flow_core.stages._codegen import Form
from flow_core.stages._effects import CHECKPOINT
from flow_core.stages._exclusive import exclusive
from flow_core.stages._filtering import CHECK
from flow_core.stages._program import Program
from flow_core.stages._shape import ABSORBED, CHECKED, ROOT, Node
from flow_core.stages._template import Site, Stage, user_site
from flow_core.structure import AbsorbingSource

if TYPE_CHECKING:
    from flow_core.flow import Flow
    from flow_core.operator import Operator

__all__ = ["StageChain"]

T_co = TypeVar("T_co", covariant=True)

_PUSH_ALL: Final = Form.PUSH_ALL
_POLL: Final = Form.POLL
"""A constant, because it is looked up whenever a flow runs; the enum's own lookup takes several
times as long."""
_UNCHANGED: Final[Program[Any, Any]] = Program(())  # Any: without a stage, items of any type
"""The program of all flows without stages. Operators make and run many such flows."""

_AnySource = Publisher[Any] | IterableSource[Any]  # Any: the type of the first item
_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages need only fit each other


class StageChain(Generic[T_co]):
    """The last link of a chain of stages behind a source; it knows the links before it.

    Args:
        source: the source of the items.
    """

    __slots__ = (
        "_args",
        "_at",
        "_boundary",
        "_code",
        "_node",
        "_parent",
        "_program",
        "_source",
    )

    def __init__(self, source: Publisher[T_co] | IterableSource[T_co]) -> None:
        self._source: _AnySource = source
        self._args: tuple[object, ...] | None
        """The arguments of the last stage; if there are few stages, also those of the stages
        before. None without stages."""
        self._boundary: tuple[Flow[Any], Operator[Any, Any], Site | None] | None
        """The flow and the operator that this flow was made from, and the place in the user's code;
        None unless this flow has its own source."""
        self._code: CodeType | str | None
        """Together with `_at`: the `Site` of the last stage, or of the source in debug mode."""
        self._at: int
        self._node: Node | None
        """The node (see `Node`) of all stages behind the source; see `_placed`."""
        self._parent: Flow[Any] | None
        """The flow to which the last stage was added."""
        self._program: Program[Any, T_co] | tuple[object, ...] | None
        """The things that one run keeps for the next one: only the arguments of all stages, if the
        run needed no more of the program than these."""
        # In one statement: operators make a flow for each of their items.
        self._args = self._boundary = self._code = self._node = self._parent = self._program = None
        if hooks.debugging:
            self._code, self._at = user_site()

    def _placed(self) -> Node:
        """Return the node of all stages behind the source, with the one that checks for None."""
        node = self._node
        if node is None:
            source = self._source
            if isinstance(source, AbsorbingSource):
                node = ABSORBED
            else:
                node = ROOT if getattr(source, "none_free", True) else CHECKED
            self._node = node
        return node

    @property
    def _stage(self) -> _AnyStage | None:
        """Return a new `Stage` for the last stage; None if there is no stage."""
        if self._args is None:
            return None
        template = self._placed().templates[0]
        return Stage.at(template, self._args[len(self._args) - len(template.params) :], self._site)

    @property
    def _site(self) -> Site | None:
        """Return the place in the user's code where the last stage was put into the flow.

        Without a stage, return the place where the flow was made.
        """
        if self._code is not None:
            return self._code, self._at
        return None if self._boundary is None else self._boundary[2]

    def _stages(self) -> tuple[_AnyStage, ...]:
        """Return the stages since the last boundary, upstream first."""
        stages: list[_AnyStage] = []
        flow: StageChain[Any] | None = self
        while flow is not None and (stage := flow._stage) is not None:
            stages.append(stage)
            flow = flow._parent
        stages.reverse()
        return tuple(stages)

    def _compiled(self) -> tuple[Publisher[Any] | IterableSource[Any], Program[Any, T_co]]:
        """Return the source and the program of one run. The source has absorbed stages by then."""
        source = self._source
        program: Program[Any, T_co]
        known = self._program
        if isinstance(source, AbsorbingSource):
            source, left = source.absorb(self._stages())
            program = Program(left)
        elif known is not None and type(known) is Program:
            program = known
        else:
            node = self._node or self._placed()
            program = self._program = _UNCHANGED if node is ROOT else self._programmed(node)
        if hooks.debugging:
            program = Program((*program.stages, Stage(CHECKPOINT, assembly_trace(self))))
        return source, program

    def _programmed(self, node: Node) -> Program[Any, T_co]:
        """Return the program of the stages; the stages are made only when they are needed."""
        if node.deep:
            stages = self._stages()
            if not getattr(self._source, "none_free", True):
                stages = Stage.at(CHECK, (repr(self._source),), None), *stages
            return Program(stages)
        args = self._arguments()
        if node.checks:
            args = repr(self._source), *args[1:]  # not the source, which may keep items alive
        sites: tuple[CodeType | str | int | None, ...] = ()
        flow: StageChain[Any] | None = self
        while flow is not None and flow._args is not None:
            sites = flow._code, flow._at, *sites
            flow = flow._parent
        return Program.of(node.shape or node.shaped(), args, sites)

    def _arguments(self) -> tuple[object, ...]:
        """Return the arguments of all stages.

        The argument of the stage that checks for None may be the source.
        """
        node = self._node or self._placed()
        args = self._args or ()
        if not node.few:
            known = self._program
            if known is not None:
                return known if isinstance(known, tuple) else known.args
            flow = self._parent
            while flow is not None and (before := flow._args) is not None:
                args = before + args
                if flow._placed().few:
                    break
                flow = flow._parent
            self._program = args = (self._source, *args) if node.checks else args
        elif node.checks:
            args = (self._source,) + args  # noqa: RUF005 - that would make a list first
        return args

    # Any: items of the source.
    def _polled(self, items: Iterator[Any], gate: Gate) -> Iterator[T_co]:
        """Return the `items` of the source after all stages; see `Program.poll`.

        Args:
            items: the items of the source; if this is a generator, it is closed at the end.
            gate: its flag ``cancelled`` makes the loop end soon.
        """
        node = self._node or self._placed()
        if node.deep or not (shape := node.shape or node.shaped()).single:
            return self._compiled()[1].poll(items, gate)
        close = None if type(items) in PLAIN else closer_of(items)
        return exclusive(shape.loop(_POLL)(items, close, gate, self, self._arguments()))

    def _pushed(
        self, source: IterableSource[Any], on_next: Callable[[T_co], object], gate: Gate
    ) -> GeneratorType[int, int, None] | None:  # Any: as in its source
        """Return a loop that sends all items of the source through all stages to `on_next`.

        The loop yields only if the gate is cancelled, and has to be closed then.

        Args:
            source: the source of this flow.
            on_next: called with each item; its result is not used.
            gate: its flag ``cancelled`` makes the loop end soon.

        Returns:
            None if one loop is not enough, or a stage handles a start, errors or a close.
        """
        node = self._node or self._placed()
        if node.deep or not (shape := node.shape or node.shaped()).single:
            return None
        if shape.hears:
            return None
        items = source.iterate()
        close = None if type(items) in PLAIN else closer_of(items)
        return shape.loop(_PUSH_ALL)(items, close, on_next, gate, 0, self, self._arguments())

    def _by_subscriber(self, error: BaseException) -> bool:
        """Return whether the `on_next` of `_pushed` has raised `error`.

        If a stage has raised it, add a note that names the stage.
        """
        return self._compiled()[1].blame(error) is Raised.DOWNSTREAM

    def _staged(self) -> Program[Any, T_co]:
        """See `Staged`."""
        return self._compiled()[1]

    def _stems_from(self, before: Flow[Any]) -> bool:
        """Return whether every step that leads from `before` to this flow is known."""
        flow: StageChain[Any] | None = self
        while flow is not None and flow is not before:
            if flow._args is None and flow._boundary is not None:
                flow = flow._boundary[0]
            else:
                flow = flow._parent
        return flow is not None
