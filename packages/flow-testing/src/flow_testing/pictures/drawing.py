"""Draw what happened in a scene as a marble diagram, in SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast, final
from xml.sax.saxutils import escape

from flow_core.flow import Flow
from flow_testing.marbles import MarbleSignal
from flow_testing.pictures.played import Line, Played, Scene, play

__all__ = ["Picture", "draw"]

# Lengths are in pixels.
_SECOND: Final = 34
"""The width of a second, if nothing needs more."""

_LEFT: Final = 46
_START: Final = 14
"""The length of a line before time 0."""
_RADIUS: Final = 13
_ROW: Final = 50
_BOX: Final = 34
_LETTER: Final = 7.9
"""The width of a letter, which is a little less in most fonts."""

_COLORS: Final = (
    "#8ecae6",
    "#ffb703",
    "#90be6d",
    "#f4978e",
    "#cdb4db",
    "#f8edeb",
    "#84dcc6",
    "#d4a373",
)
"""The colours of items; dark letters are readable on each of them."""

# Lines and letters have the colour of the page's text; a file by itself follows the system.
_STYLE: Final = (
    ".marbles{max-width:100%;height:auto}"
    ".marbles text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:currentColor}"
    ".marbles .item{fill:#1b1b1b}"
    ".marbles .line{stroke:currentColor;stroke-width:1.5;fill:none}"
    ".marbles .gone{stroke-dasharray:3 4;opacity:.6}"
    ".marbles .small{font-size:11px}"
    "@media(prefers-color-scheme:dark){svg.marbles:root{color:#eee;background:#1b1b1b}}"
)


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """A marble diagram.

    Attributes:
        svg: the picture, as the text of a file.
        words: the same in words.
    """

    svg: str
    words: str

    def _repr_svg_(self) -> str:
        return self.svg


class _Mark(NamedTuple):
    """An item on a line, or the end of the line."""

    time: float
    kind: str
    text: str

    @property
    def width(self) -> float:
        """The room that it needs."""
        return max(2 * _RADIUS + 2, len(self.text) * _LETTER + 12) if self.kind == "item" else 18.0


def draw(scene: Scene, *, title: str = "") -> Picture:
    """Run the flow of a scene on a virtual clock, and draw what happens.

    Args:
        scene: what to run, and when.
        title: what the picture shows, for readers who cannot see it; by default, the expression.

    Raises:
        Exception: what the expression of the scene raises.
    """
    played = play(scene)
    words = "\n".join(_sentences(scene, played))
    return Picture("".join(_Drawing(scene, played).parts(title or scene.flow, words)), words)


def _sentences(scene: Scene, played: Played) -> Iterator[str]:
    for name, lines in played.inputs.items():
        for line in lines[:1]:
            yield f"{name}: {_said(line)}."
        if not lines:
            yield f"{name}: not subscribed to."
    for line in played.results:
        since = f" from {_number(line.since)} s" if line.since else ""
        yield f"{scene.flow}{since}: {_said(line)}."
        for inner in line.inner:
            yield f"The flow that came at {_number(inner.since)} s: {_said(inner)}."


def _said(line: Line) -> str:
    said = {"on_complete": "completes", "on_error": "fails"}
    parts = [
        f"{said.get(signal.name) or _text(signal.value)} at {_number(signal.time_s)} s"
        for signal in line.signals
    ]
    if line.cancelled is not None:
        parts.append(f"cancelled at {_number(line.cancelled)} s")
    return ", ".join(parts) or "nothing"


@final
class _Drawing:
    """Draws from top to bottom, and keeps count of how far it is."""

    def __init__(self, scene: Scene, played: Played) -> None:
        self._scene = scene
        self._played = played
        self._colors: dict[str, str] = {}
        self._x = _columns(played)
        self._y = 6.0
        box = len(scene.flow) * _LETTER + 24
        self._right = max(self._at(played.until), _LEFT - _START + box)

    def parts(self, title: str, words: str) -> Iterator[str]:
        """Yield the text of the file, part by part."""
        body = list(self._body())
        width, height = _number(self._right + 24), _number(self._y)
        yield (
            '<svg xmlns="http://www.w3.org/2000/svg" class="marbles" role="img" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        )
        yield f"<title>{escape(title)}</title>\n<desc>{escape(words)}</desc>\n"
        yield f"<style>{_STYLE}</style>\n"
        yield from (f"{part}\n" for part in body)
        yield "</svg>\n"

    def _body(self) -> Iterator[str]:
        for name, lines in self._played.inputs.items():
            middle = self._y + _ROW / 2
            yield f'<text x="10" y="{_number(middle + 4.5)}">{escape(name)}</text>'
            yield from self._row(lines)
        yield from self._box()
        for line in self._played.results:
            yield from self._row((line,))
            yield from self._requests(line)
            yield from self._inner_rows(line)
        self._y += 4

    def _box(self) -> Iterator[str]:
        left, top = _LEFT - _START, self._y + 4
        yield (
            f'<rect class="line" x="{left}" y="{_number(top)}" rx="6" '
            f'width="{_number(self._right - left)}" height="{_BOX}"/>'
        )
        y = _number(top + _BOX / 2 + 4.5)
        yield f'<text x="{_LEFT}" y="{y}">{escape(self._scene.flow)}</text>'
        self._y = top + _BOX + 6

    def _row(self, lines: Sequence[Line]) -> Iterator[str]:
        middle = self._y + _ROW / 2
        if not lines:
            yield _path(middle, _LEFT - _START, self._at(self._played.until), "line gone")
        for line in lines:
            yield from self._line(line, middle)
        self._y += _ROW

    def _inner_rows(self, line: Line) -> Iterator[str]:
        above = self._y - _ROW / 2
        for inner in line.inner:
            middle = self._y + _ROW / 2 - 6
            x = _number(self._at(inner.since))
            yield f'<path class="line gone" d="M{x} {_number(above + 8)}V{_number(middle)}"/>'
            yield from self._line(inner, middle)
            self._y += _ROW - 10

    def _line(self, line: Line, middle: float) -> Iterator[str]:
        placed: list[tuple[_Mark, float]] = []
        taken: dict[float, float] = {}
        for mark in _marks(line.signals):
            placed.append((mark, self._at(mark.time) + taken.get(mark.time, 0.0)))
            taken[mark.time] = taken.get(mark.time, 0.0) + mark.width
        until = self._at(self._played.until)
        end = line.end
        left = self._at(line.since) - (0 if line.since else _START)
        right = max([until if end is None else self._at(end), *(x for _, x in placed)])
        yield _path(middle, left, right, "line", "m-7 -4l7 4l-7 4" if end is None else "")
        if line.cancelled is not None:
            yield _path(middle, self._at(line.cancelled), until, "line gone")
        for mark, x in placed:
            yield self._mark(mark, x, middle)

    def _mark(self, mark: _Mark, x: float, y: float) -> str:
        if mark.kind == "on_complete":
            return f'<path class="line" d="M{_number(x)} {_number(y - 14)}v28"/>'
        if mark.kind == "on_error":
            at = f"M{_number(x - 8)} {_number(y - 8)}"
            return f'<path class="line" d="{at}l16 16m0 -16l-16 16"/>'
        if mark.kind == "flow":
            return f'<circle cx="{_number(x)}" cy="{_number(y)}" r="6" fill="currentColor"/>'
        color = self._colors.setdefault(mark.text, _COLORS[len(self._colors) % len(_COLORS)])
        left, half = x - _RADIUS, max((mark.width - 4) / 2, _RADIUS)
        return (
            f'<rect x="{_number(left)}" y="{_number(y - _RADIUS)}" width="{_number(2 * half)}" '
            f'height="{2 * _RADIUS}" rx="{_RADIUS}" fill="{color}" stroke="currentColor"/>'
            f'<text class="item" x="{_number(left + half)}" y="{_number(y + 4.5)}" '
            f'text-anchor="middle">{escape(mark.text)}</text>'
        )

    def _requests(self, line: Line) -> Iterator[str]:
        for time, n in line.requests:
            x, y = self._at(time), self._y
            yield f'<path class="line" d="M{_number(x)} {_number(y + 6)}v-14m-4 5l4 -5l4 5"/>'
            yield (
                f'<text class="small" x="{_number(x + 7)}" y="{_number(y + 6)}">request({n})</text>'
            )
        self._y += 14 if line.requests else 0

    def _at(self, time: float) -> float:
        return self._x[time]


def _columns(played: Played) -> dict[float, float]:
    """Return where each time is: what comes at one time in a line has room side by side."""
    lines = [line for every in played.inputs.values() for line in every]
    for line in played.results:
        lines += [line, *line.inner]
    widths = {0.0: 0.0, played.until: 0.0}
    for line in lines:
        own: dict[float, float] = {}
        for mark in _marks(line.signals):
            own[mark.time] = own.get(mark.time, 0.0) + mark.width
        for time in (line.since, line.cancelled, *(time for time, _ in line.requests)):
            own.setdefault(line.since if time is None else time, 0.0)
        for time, width in own.items():
            widths[time] = max(widths.get(time, 0.0), width)
    found = dict[float, float]()
    before, x, width = 0.0, float(_LEFT), 0.0
    for time in sorted(widths):
        x += max((time - before) * _SECOND, width + 6 if found else 0.0)
        found[time] = x
        before, width = time, widths[time]
    return found


def _marks(signals: Iterable[MarbleSignal]) -> Iterator[_Mark]:
    for signal in signals:
        if signal.name != "on_next":
            yield _Mark(signal.time_s, signal.name, "")
        elif isinstance(signal.value, Flow):
            yield _Mark(signal.time_s, "flow", "")
        else:
            yield _Mark(signal.time_s, "item", _text(signal.value))


def _text(value: object) -> str:
    """Return a short text for an item: no quotes within tuples and lists."""
    if isinstance(value, Flow):
        return "a flow"
    if isinstance(value, str):
        return value
    if not isinstance(value, (tuple, list)):
        return repr(value)
    items = ", ".join(map(_text, cast("Sequence[object]", value)))
    return f"({items})" if isinstance(value, tuple) else f"[{items}]"


def _path(y: float, left: float, right: float, kind: str, more: str = "") -> str:
    return f'<path class="{kind}" d="M{_number(left)} {_number(y)}H{_number(right)}{more}"/>'


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
