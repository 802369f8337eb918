"""The parts of a flow as a picture: the items go from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, final
from xml.sax.saxutils import escape

from flow_cli.drawing.parts import Branch, Kind, Part
from flow_cli.drawing.words import lines_of, short

__all__ = ["svg"]

# Lengths are in pixels.
_LETTER: Final = 7.9
"""The width of a letter, which is a little less in most fonts."""
_SMALL: Final = 6.7
"""The width of a letter of the small lines."""
_LINE: Final = 18
_MARGIN: Final = 12
_BETWEEN: Final = 28
"""The length of an arrow between two parts."""
_IN: Final = 40
"""The way from the left side of a part to its arrows."""
_ASIDE: Final = 32
"""The room between a flow and the next branch."""
_MANY: Final = 12
"""The number of stages after which the others are counted only."""

# Lines and letters have the colour of the page's text; a file by itself follows the system.
_STYLE: Final = (
    ".flow{max-width:100%;height:auto}"
    ".flow text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:currentColor}"
    ".flow .small{font-size:11px;opacity:.75}"
    ".flow .card,.flow .arrow{stroke:currentColor;stroke-width:1.5;fill:none}"
    ".flow .boundary{stroke-dasharray:7 4}"
    ".flow .shared{stroke-dasharray:2 4}"
    ".flow .refused{stroke:#d33;stroke-width:3}"
    ".flow .inner{stroke-dasharray:3 4}"
    "@media(prefers-color-scheme:dark){svg.flow:root{color:#eee;background:#1b1b1b}}"
)

_COLORS: Final = ("#8ecae6", "#ffb703", "#90be6d", "#f4978e", "#cdb4db", "#d4a373")
"""The colours of the threads that are known beforehand, and of clusters."""


def svg(title: str, parts: tuple[Part, ...]) -> str:
    """Return the parts as the text of an SVG file.

    Args:
        title: the title, for readers who cannot see the picture.
        parts: the parts of a flow.
    """
    drawing = _Drawing()
    drawing.lay(parts, _MARGIN, _MARGIN)
    width, height = drawing.right + _MARGIN, drawing.bottom + _MARGIN
    words = "\n".join(_sentences(parts))
    body = "".join(f"{line}\n" for line in drawing.lines())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flow" role="img" width="{_n(width)}" '
        f'height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(words)}</desc>\n"
        f"<style>{_STYLE}</style>\n{body}</svg>\n"
    )


def _sentences(parts: tuple[Part, ...]) -> Iterator[str]:
    for part in parts:
        if part.kind is not Kind.PLAN:
            yield f"{'; '.join(_rows(part))}."
        for branch in part.branches:
            yield f"{branch.label}:"
            yield from _sentences(branch.parts)


class _Card(NamedTuple):
    """A part, and where it is drawn."""

    part: Part
    rows: Sequence[str]
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The place where arrows come in and go out, from the left."""
        return self.x + _IN


class _Arrow(NamedTuple):
    """From one card to another: straight down, or from the side."""

    begin: _Card
    end: _Card
    label: str = ""


class _Laid(NamedTuple):
    """A flow that has its place: how far it goes, and its last card."""

    right: float
    bottom: float
    last: _Card | None


@final
class _Drawing:
    """Gives each part its place, and draws them all afterwards."""

    def __init__(self) -> None:
        self._cards: list[_Card] = []
        self._arrows: list[_Arrow] = []
        self._colors: dict[str, str] = {}
        self.right = 0.0
        self.bottom = 0.0

    def lay(self, parts: tuple[Part, ...], x: float, y: float) -> _Laid:
        """Give the parts of a flow their places: one below the other, branches at the side."""
        shown = [part for part in parts if part.kind is not Kind.PLAN]
        trunk = max((_size(part)[0] for part in shown), default=0.0)
        last: _Card | None = None
        right, top = x + trunk, y
        for part in shown:
            ends: list[tuple[_Card, Branch]] = []
            aside = x if last is None else x + trunk + _ASIDE
            lowest = top
            for branch in part.branches:
                laid = self.lay(branch.parts, aside, y)
                aside = laid.right + _ASIDE
                right, lowest = max(right, laid.right), max(lowest, laid.bottom + _BETWEEN)
                if laid.last is not None:
                    ends.append((laid.last, branch))
            width, height = _size(part)
            card = _Card(part, _rows(part), x, lowest, width, height)
            self._cards.append(card)
            if last is not None:
                self._arrows.append(_Arrow(last, card))
            self._arrows += [_Arrow(end, card, _label(branch)) for end, branch in ends]
            last, top = card, lowest + height + _BETWEEN
            if ends:
                y = top
        bottom = top - _BETWEEN
        self.right, self.bottom = max(self.right, right), max(self.bottom, bottom)
        return _Laid(right, bottom, last)

    def lines(self) -> Iterator[str]:
        """Yield the elements of the picture."""
        for arrow in self._arrows:
            yield from _arrow(arrow)
        for card in self._cards:
            yield from self._card(card)

    def _card(self, card: _Card) -> Iterator[str]:
        part, x, y = card.part, card.x, card.y
        kind = part.kind.value
        where = part.where if part.kind is Kind.ABSORBED else part.thread
        radius = 18 if part.kind is Kind.SOURCE else 6
        box = f'x="{_n(x)}" y="{_n(y)}" width="{_n(card.width)}" height="{_n(card.height)}"'
        if where:
            color = self._colors.setdefault(where, _COLORS[len(self._colors) % len(_COLORS)])
            yield f'<rect {box} rx="{_n(radius)}" fill="{color}" fill-opacity=".35"/>'
        yield f'<rect class="card {kind}" {box} rx="{_n(radius)}"/>'
        for index, (row, small) in enumerate(zip(card.rows, _small(part, card.rows), strict=True)):
            at = y + _MARGIN + _LINE * (index + 0.75)
            style = ' class="small"' if small else ""
            yield f'<text x="{_n(x + _MARGIN + 4)}" y="{_n(at - 4)}"{style}>{escape(row)}</text>'


def _arrow(arrow: _Arrow) -> Iterator[str]:
    begin, end = arrow.begin, arrow.end
    x, y = begin.middle, begin.y + begin.height
    style = "arrow inner" if arrow.label else "arrow"
    if x < end.x + end.width - _MARGIN:  # right above it
        head = f"M{_n(x)} {_n(end.y)}l-4 -7m4 7l4 -7"
        yield f'<path class="{style}" d="M{_n(x)} {_n(y)}V{_n(end.y)}"/>'
    else:
        side, middle = end.x + end.width, end.y + end.height / 2
        head = f"M{_n(side)} {_n(middle)}l7 -4m-7 4l7 4"
        yield f'<path class="{style}" d="M{_n(x)} {_n(y)}V{_n(middle)}H{_n(side)}"/>'
    yield f'<path class="arrow" d="{head}"/>'
    if arrow.label:
        yield f'<text class="small" x="{_n(x + 8)}" y="{_n(y + 16)}">{escape(arrow.label)}</text>'


def _label(branch: Branch) -> str:
    return "" if branch.is_read else short(branch.label)


def _rows(part: Part) -> list[str]:
    rows = lines_of(part)
    if len(part.steps) > _MANY and part.kind is not Kind.REFUSED:
        rows[1 + _MANY : 1 + len(part.steps)] = [f"… {len(part.steps)} stages"]
    return rows


def _small(part: Part, rows: Sequence[str]) -> Iterator[bool]:
    """Yield for each row whether it is a small one: the first, and the facts at the end."""
    steps = len(rows) if part.kind is Kind.REFUSED else min(max(len(part.steps), 1), _MANY + 1)
    for index in range(len(rows)):
        yield not 0 < index <= steps


def _size(part: Part) -> tuple[float, float]:
    """Return the width and the height of a part."""
    rows = _rows(part)
    widths = [
        len(row) * (_SMALL if small else _LETTER)
        for row, small in zip(rows, _small(part, rows), strict=True)
    ]
    return max(widths) + 2 * _MARGIN + 8, len(rows) * _LINE + 2 * _MARGIN - 4


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
