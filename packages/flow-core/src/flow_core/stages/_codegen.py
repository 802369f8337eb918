"""Generates a loop's text from the templates of its stages."""

from __future__ import annotations

import enum
from typing import Final, final

from flow_core.stages._template import SLOT, Lines, Template

__all__ = ["AGAIN", "HEAD", "PAUSED", "TAIL", "Form", "LoopWriter"]

PAUSED: Final = -1
"""The value that a pushing loop yields when it needs demand to continue."""


class Form(enum.Enum):
    """The ways in which a generated loop can get its items and send its results."""

    PULL = "pull"
    FIRST = "pull, the first item"
    CALL = "call, the first item"
    LIST = "call, all items"
    POLL = "poll"
    PUSH = "push"
    PUSH_ALL = "push, everything"
    PUSH_IF = "push, conditional"
    FEED = "feed"
    FEED_IF = "feed, conditional"
    RECEIVE = "receive"
    RECEIVE_IF = "receive, conditional"
    RECEIVE_ALL = "receive, everything"

    # Loops are looked up by form whenever a flow runs; members are singletons.
    __hash__ = object.__hash__


HEAD: Final = -1
TAIL: Final = -2
AGAIN: Final = -3
"""The owner of lines that raise an error again, after its real owner was found."""


@final
class _Writer:
    """Lines of generated source, each with the index of the stage it belongs to.

    Args:
        names: the names of the stages.
    """

    __slots__ = ("_names", "owners", "text")

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self.text: list[str] = []
        self.owners: list[int] = []

    def put(self, depth: int, line: str, owner: int = HEAD) -> None:
        if line.startswith("while ") and line != "while True:":
            condition = line.removeprefix("while ").removesuffix(":")
            self.put(depth, "while True:", owner)
            depth, line = depth + 1, f"if not ({condition}): break"
        stage = f"  # {owner + 1} {self._names[owner]}" if owner >= 0 else ""
        self.text.append(f"{' ' * depth}{line}{stage}\n")
        self.owners.append(owner)

    def end_loops(self) -> None:
        """End each loop's body with a simple statement.

        Ctrl-C may raise where a loop jumps back. If that is the jump of a condition, CPython 3.13
        takes it to be outside of the `try` around the loop, which then closes nothing; 3.14 still
        does so for an ``if`` at the end of the body. For ``while`` see `put`.
        """
        depths = [len(line) - len(line.lstrip()) for line in self.text]
        for start in reversed(range(len(depths))):
            depth = depths[start]
            if not self.text[start].lstrip().startswith(("for ", "while ")):
                continue
            rest = range(start + 1, len(depths))
            end = next((index for index in rest if depths[index] <= depth), len(depths))
            if depths[end - 1] > depth + 1:
                depths.insert(end, depth + 1)
                self.text.insert(end, f"{' ' * (depth + 1)}pass\n")
                self.owners.insert(end, HEAD)


@final
class LoopWriter:
    """Writes the source of one function."""

    __slots__ = (
        "_after",
        "_called",
        "_closing",
        "_counts",
        "_emits",
        "_finishes",
        "_form",
        "_gated",
        "_handlers",
        "_leaves",
        "_out",
        "_over",
        "_parts",
        "_pushes",
        "_receives",
        "_rendered",
        "_returns",
        "_stops",
    )

    def __init__(self, form: Form, templates: tuple[Template, ...]) -> None:
        self._form = form
        self._rendered = [template.lines for template in templates]
        self._returns = form in (Form.FIRST, Form.CALL)
        """True if the function ends with the first item."""
        self._called = form in (Form.CALL, Form.LIST)
        """True if the function is made once, and then called with the items."""
        self._pushes = form not in (Form.PULL, Form.POLL, Form.LIST) and not self._returns
        self._counts = self._pushes and form not in (Form.PUSH_ALL, Form.RECEIVE_ALL)
        """True if the function counts down the items that it sends."""
        self._gated = self._pushes or form is Form.POLL
        """True if the function reads a gate, which others may close."""
        self._receives = form in (Form.RECEIVE, Form.RECEIVE_IF, Form.RECEIVE_ALL)
        """True if the function is called for each item."""
        self._leaves = False
        """True while the text being written is a function from which a stage that stops returns."""
        self._out = _Writer([" ".join(template.name.split()) for template in templates])
        self._emits = not any(template.absorbs for template in templates)
        """True if the loop being written reaches the subscriber, so that demand matters."""
        self._stops = max((i for i, lines in enumerate(self._rendered) if lines.stops), default=-1)
        """The last stage that may stop the flow; a loop checks for a stop only before that
        stage."""
        self._handlers = [i for i, lines in enumerate(self._rendered) if lines.on_error]
        self._finishes = any(lines.on_end for lines in self._rendered)
        self._closing = [i for i, lines in enumerate(self._rendered) if lines.on_close]
        self._parts = [template.params for template in templates]
        self._after: list[tuple[int, Lines]] = []
        """The lines after the EMIT of each stage around the present place, which run even if a
        stage there stops."""
        resumed = next((i for i, lines in enumerate(self._rendered) if _after(lines.on_item)), None)
        self._over = resumed is not None and any(
            resumed < handler < self._stops for handler in self._handlers
        )
        """True if these lines may fail, and a stage before the one that has stopped handles
        errors."""

    def write(self) -> _Writer:
        out = self._out
        receive = "def flow(on_next, gate, n, beside, raised, stopped, attend, made, args):"
        head = {
            Form.PULL: "def flow(it, close, made, args):",
            Form.FIRST: "def flow(it, close, made, args):",
            Form.CALL: "def flow(made, args):",
            Form.LIST: "def flow(made, args):",
            Form.POLL: "def flow(it, close, gate, made, args):",
            Form.PUSH: "def flow(it, close, on_next, gate, n, made, args):",
            Form.PUSH_ALL: "def flow(it, close, on_next, gate, n, made, args):",
            Form.PUSH_IF: "def flow(it, close, on_next, gate, n, made, args):",
            Form.FEED: "def flow(on_next, gate, n, made, args):",
            Form.FEED_IF: "def flow(on_next, gate, n, made, args):",
            Form.RECEIVE: receive,
            Form.RECEIVE_IF: receive,
            Form.RECEIVE_ALL: receive,
        }[self._form]
        out.put(0, head)
        names = [f"{param}_{index}" for index, params in enumerate(self._parts) for param in params]
        if names:
            out.put(1, f"({', '.join(names)},) = args")
        if self._called:
            self._function(1)
        elif self._receives:
            self._received(1)
        else:
            self._whole(1)
        out.end_loops()
        return out

    def _function(self, depth: int) -> None:
        """Write a function that takes the items; cells hold the rest, so a call is one frame."""
        out = self._out
        name = "first" if self._returns else "list_of"
        out.put(depth, f"def {name}(prepared, items):")
        out.put(depth + 1, "if type(items) not in iterated or hooks.debugging:")
        made = "prepared(items).first()" if self._returns else "list(prepared(items))"
        out.put(depth + 2, f"return {made}")
        out.put(depth + 1, "it = iter(items)")
        if not self._returns:
            out.put(depth + 1, "found = []")
            out.put(depth + 1, "put = found.append")
        self._whole(depth + 1)
        out.put(depth + 1, "raise no_item(prepared)" if self._returns else "return found")
        out.put(depth, f"return {name}")

    def _received(self, depth: int) -> None:
        """Write a function for each item, and one for the end; cells hold the state of the stages.

        The thread that halts the function learns whether it runs. Items that come while it runs or
        is halted go to `beside`; if it was halted meanwhile, the thread that runs it calls
        `attend`.
        """
        out = self._out
        stop = ["stop"] if self._stops >= 0 else []
        if stop:
            out.put(depth, "stop = -1")
        self._states(depth)
        out.put(depth, "busy = look = False")
        kept = [
            name.replace(SLOT, f"_{index}")
            for index, lines in enumerate(self._rendered)
            for name in lines.kept
        ]
        if kept:
            # Names of this function; those without a state or an argument have no value yet.
            out.put(depth, "if False:")
            out.put(depth + 1, f"{' = '.join(kept)} = None")
        out.put(depth, "def halt(held):")
        out.put(depth + 1, "nonlocal look")
        out.put(depth + 1, "look = held")
        out.put(depth + 1, "return busy")
        if self._finishes:
            out.put(depth, "def end():")
            if stop or kept:
                out.put(depth + 1, f"nonlocal {', '.join([*stop, *kept])}")
            self._ends(depth + 1)
        count = ["n"] if self._counts else []
        out.put(depth, "def receive(x):")
        out.put(depth + 1, f"nonlocal {', '.join(['busy', *count, *stop, *kept])}")
        out.put(depth + 1, "if busy:")
        out.put(depth + 2, "return beside(x)")
        # We store `busy` and then read `look`; a thread that halts us stores `look` and then reads
        # `busy`. So one of the two always sees the other, also without the GIL.
        out.put(depth + 1, "busy = True")
        out.put(depth + 1, "if look:")
        out.put(depth + 2, "busy = False")
        out.put(depth + 2, "return beside(x)")
        out.put(depth + 1, "try:")
        self._leaves = True
        self._body(0, depth + 2)
        out.put(depth + 1, "except BaseException as error:")
        out.put(depth + 2, "raised(caught(error))")
        out.put(depth + 1, "finally:")
        out.put(depth + 2, "busy = False")
        out.put(depth + 2, "if look:")
        out.put(depth + 3, "attend()")
        if count:
            out.put(depth + 1, "return n")
        out.put(depth, f"return receive, halt, {'end' if self._finishes else None}")

    def _whole(self, depth: int) -> None:
        """Write everything that runs, and the code that cleans up after it."""
        out = self._out
        if self._stops >= 0 or self._handlers:
            out.put(depth, "stop = over = -1" if self._over else "stop = -1")
        if self._closing:
            out.put(depth, "closers = gate.opened()" if self._gated else "closers = []")
        fed = self._form in (Form.FEED, Form.FEED_IF)
        # Also where there is nothing left to do: from outside of any `try`, CPython 3.13 lets
        # `close` end a generator that another thread has just resumed, which then continues.
        out.put(depth, "try:")
        if self._handlers:
            self._handled(depth + 1)
        else:
            self._run(depth + 1)
        if not self._pushes:
            if TAIL not in out.owners and not self._returns and not self._called:
                # No stage emits, but it has to be a generator.
                out.put(depth + 1, "yield from ()")
            out.put(depth, "except Exception as error:")
            out.put(depth + 1, "annotate(error, made)")
            out.put(depth + 1, "raise")
        called = self._called  # its iterator has nothing to close
        if called and not (self._handlers or self._closing):
            return
        out.put(depth, "finally:")
        if self._handlers:
            # An error refers to this frame by its traceback: no variable here may refer to it.
            out.put(depth + 1, "x = error = failure = None")
        if self._closing and not self._gated:
            out.put(depth + 1, "close_all(closers)")
        if not fed and not called:
            out.put(depth + 1, "if close is not None:")
            out.put(depth + 2, "close()")
        elif fed and not self._handlers:
            out.put(depth + 1, "pass")

    def _states(self, depth: int) -> None:
        """Write the code with which stages begin and end, downstream first.

        If a stage fails to begin, the stages after it exist and get the error; those before it
        never existed.
        """
        out = self._out
        for index in reversed(range(len(self._rendered))):
            lines = self._rendered[index]
            for line in lines.state:
                out.put(depth, line.replace(SLOT, f"_{index}"), index)
            if not lines.on_close:
                continue
            # No name of a template ends in a digit, unless an underscore is before it.
            out.put(depth, f"def closer{index}():", index)
            if lines.closing_names:
                names = ", ".join(lines.closing_names).replace(SLOT, f"_{index}")
                out.put(depth + 1, f"nonlocal {names}")
            self._put_lines(index, depth + 1, lines.on_close)
            out.put(depth, f"closers.append(closer{index})")

    def _handled(self, depth: int) -> None:
        """Write the loop; a failure in it jumps to the next stage that handles errors."""
        out = self._out
        out.put(depth, "at = -1")
        out.put(depth, "while True:")
        out.put(depth + 1, "try:")
        out.put(depth + 2, "if at < 0:")
        self._run(depth + 3, ends=False)
        for index in self._handlers:
            out.put(depth + 2, f"elif at == {index}:")
            out.put(depth + 3, "for _ in (None,):")
            out.put(depth + 4, "error = failure")
            lines = self._rendered[index].on_error
            self._block(index, depth + 4, lines, at_end=index + 1, handles=True)
            out.put(depth + 3, f"if stop <= {index}:")
            out.put(depth + 4, "raise failure", AGAIN)
        self._ends(depth + 2)
        out.put(depth + 2, "break")
        out.put(depth + 1, "except BaseException as caught_error:")
        out.put(depth + 2, "failure = caught(caught_error)")
        out.put(depth + 2, f"at = handler(failure, made, {tuple(self._handlers)}, at)")
        out.put(depth + 2, "if at < 0:")
        out.put(depth + 3, "raise failure", AGAIN)

    def _run(self, depth: int, *, ends: bool = True) -> None:
        """Write the code of the start, the loop over the items, and the code of the end."""
        out = self._out
        self._states(depth)
        started = self._starts(depth)
        at = depth
        if started and self._stops >= 0:
            out.put(depth, "if stop < 0:")
            at += 1
        if self._form in (Form.FEED, Form.FEED_IF):
            self._fed(at)
        else:
            if started or self._closing or self._form is Form.POLL:
                self._pause(at, "it")  # to close a loop that never ran, it is started first
            out.put(at, "for x in it:")
            self._body(0, at + 1)
            self._pause(at + 1, "it")
        if ends:
            self._ends(depth)

    def _starts(self, depth: int) -> bool:
        """Write what the stages do before the first item, downstream first."""
        out, emits = self._out, self._emits
        started = False
        for index in reversed(range(len(self._rendered))):
            lines = self._rendered[index].on_start
            if not lines:
                continue
            at = depth
            if self._stops >= 0:
                if started:
                    out.put(at, "if stop < 0:")
                    at += 1
                out.put(at, "for _ in (None,):", index)
                at += 1
            self._block(index, at, lines, at_end=index)
            started = True
        self._emits = emits
        return started

    def _fed(self, depth: int) -> None:
        out = self._out
        if self._emits:
            out.put(depth, "while not n and not gate.done:")
            out.put(depth + 1, "n = yield -1")
        out.put(depth, "x = yield n")
        out.put(depth, "while x is not END:")
        self._body(0, depth + 1)
        if self._emits:
            out.put(depth + 1, "while gate.cancelled or (not n and not gate.done):")
            out.put(depth + 2, "n = yield -1")
        out.put(depth + 1, "x = None")  # while it waits it refers to nothing
        out.put(depth + 1, "x = yield n")

    def _body(self, first: int, depth: int) -> None:
        """Write the stages from `first` on, each in place of the EMIT of the one before."""
        after: list[tuple[int, int, Lines]] = []
        for index in range(first, len(self._rendered)):
            lines = self._rendered[index].on_item
            emit = _emit(lines)
            self._put_lines(index, depth, lines[:emit])
            if emit is None:
                break
            after.append((index, depth, lines[emit + 1 :]))
            self._after.append((index, _rest(lines, emit)))
            # The next stage stands where the EMIT stood, as deep.
            depth += lines[emit][0]
        else:
            self._tail(depth)
        for index, outer, lines_after in reversed(after):
            self._after.pop()
            self._put_lines(index, outer, lines_after)

    def _block(
        self, index: int, depth: int, lines: Lines, *, at_end: int, handles: bool = False
    ) -> None:
        """Write lines outside of the loop over the items.

        What they emit goes to the later stages.
        """
        out = self._out
        emit = _emit(lines)
        self._put_lines(index, depth, lines[:emit], at_end=at_end)
        if emit is None:
            return
        inner = depth + lines[emit][0]
        if handles and self._over:
            out.put(inner, f"if over > {index}:", index)
            out.put(inner + 1, "stop = over", index)
            out.put(inner + 1, "break", index)
        self._emits = not any(part.absorbs for part in self._rendered[index + 1 :])
        if self._counts and self._emits:
            out.put(inner, "while not n or gate.cancelled:")
            out.put(inner + 1, "n = yield -1")
        elif self._pushes and self._emits:
            self._pause(inner, "it")
        elif self._form is Form.POLL and at_end == index:
            # Cancelling before the first poll starts the loop, so that its `finally` blocks run.
            out.put(inner, "if gate.cancelled:")
            out.put(inner + 1, "return")
        self._body(index + 1, inner)
        self._put_lines(index, depth, lines[emit + 1 :], at_end=at_end)

    def _put_lines(
        self, index: int, depth: int, lines: Lines, *, at_end: int | None = None
    ) -> None:
        """Write the lines of a stage.

        `at_end`: what `stop` means outside of the loop over the items.
        """
        out = self._out
        first = index if at_end is None else at_end
        for inner, template_line in lines:
            line = template_line.replace(SLOT, f"_{index}")
            if line == "NOT_NONE":
                out.put(depth + inner, "if x is None:", index)
                out.put(depth + inner + 1, f"raise none_item(made, {index})", index)
            elif line == "STOP":
                if self._over and at_end is None:
                    out.put(depth + inner, f"over = {first}", index)
                for earlier, lines_after in reversed(self._after):
                    self._put_lines(earlier, depth + inner, lines_after)
                stop = f"max(over, {first})" if self._over and at_end is not None else f"{first}"
                out.put(depth + inner, f"stop = {stop}", index)
                if self._leaves:
                    if self._finishes:
                        out.put(depth + inner, "end()", AGAIN)
                    out.put(depth + inner, "stopped()", AGAIN)
                    out.put(depth + inner, "return n" if self._counts else "return")
                else:
                    out.put(depth + inner, "break", index)
            elif line == "LEAVE":
                # A stage in the loop has stopped. At the end, a stop by this very stage has passed.
                if self._leaves:
                    continue
                if self._stops >= first or self._rendered[index].recovers:
                    out.put(depth + inner, f"if stop >= {first}:", index)
                    out.put(depth + inner + 1, "break", index)
            elif line.startswith("PAUSE "):
                self._pause(depth + inner, line.removeprefix("PAUSE "))
            else:
                out.put(depth + inner, line, index)

    def _tail(self, depth: int) -> None:
        out = self._out
        if self._returns:
            out.put(depth, "return x", TAIL)
        elif self._called:
            out.put(depth, "put(x)", TAIL)
        elif not self._pushes:
            out.put(depth, "yield x", TAIL)
        elif self._form in (Form.PUSH_IF, Form.FEED_IF, Form.RECEIVE_IF):
            out.put(depth, "if on_next(x):", TAIL)
            out.put(depth + 1, "n -= 1", TAIL)
        else:
            out.put(depth, "on_next(x)", TAIL)
            if self._counts:
                out.put(depth, "n -= 1", TAIL)

    def _pause(self, depth: int, iterator: str) -> None:
        """Write the end of a loop's body: pause without demand, unless the loop has ended."""
        out = self._out
        if not self._gated:
            return
        if self._form is Form.POLL or self._receives:
            out.put(depth, "if gate.cancelled:")
            out.put(depth + 1, "return")
            return
        # A cancelled loop never leaves its pause: the thread that cancels closes it.
        if not (self._emits and self._counts):
            out.put(depth, "while gate.cancelled:")
            out.put(depth + 1, "n = yield -1")
            return
        # An iterator that is known to have no more items needs no demand: the loop runs on to its
        # end.
        out.put(depth, "if not n or gate.cancelled:")
        out.put(depth + 1, f"while gate.cancelled or (not n and not exhausted({iterator})):")
        out.put(depth + 2, "n = yield -1")

    def _ends(self, depth: int) -> None:
        """Write what the stages emit after the last item, upstream first."""
        out = self._out
        if self._finishes:
            # A loop before this one, of the same program, returns when the flow is cancelled.
            if self._form is Form.POLL or self._receives:
                out.put(depth, "if gate.cancelled:")
                out.put(depth + 1, "return")
            elif self._gated:
                out.put(depth, "while gate.cancelled:")
                out.put(depth + 1, "n = yield -1")
            if self._form in (Form.FEED, Form.FEED_IF) and self._stops >= 0:
                out.put(depth, "gate.ending = True")
        for index, lines in enumerate(self._rendered):
            if not lines.on_end:
                continue
            at = depth
            later = any(part.stops for part in self._rendered[index + 1 :])
            if later or any(part.recovers for part in self._rendered[index:]):
                out.put(at, f"if stop <= {index}:", index)
                at += 1
            if later:
                out.put(at, "for _ in (None,):", index)
                at += 1
            self._block(index, at, lines.on_end, at_end=index + 1)


def _emit(lines: Lines) -> int | None:
    """Return the index of the line that is EMIT; None if there is none."""
    return next((i for i, (_, text) in enumerate(lines) if text == "EMIT"), None)


def _after(lines: Lines) -> Lines:
    """Return the lines after the EMIT of `lines`, see `_rest`."""
    emit = _emit(lines)
    return () if emit is None else _rest(lines, emit)


def _rest(lines: Lines, emit: int) -> Lines:
    """Return the lines after an EMIT in its block, unless they decide how the flow continues."""
    depth = lines[emit][0]
    rest: list[tuple[int, str]] = []
    for inner, line in lines[emit + 1 :]:
        if inner < depth or line.startswith("PAUSE ") or line == "LEAVE":
            break
        if line == "STOP":
            return ()
        rest.append((inner - depth, line))
    return tuple(rest)
