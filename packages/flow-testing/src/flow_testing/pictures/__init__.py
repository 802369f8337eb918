"""Marble diagrams: pictures of what a flow makes of its sources, each drawn from a run.

>>> from flow_testing.pictures import Scene, draw
>>> shown = draw(Scene("a.filter(lambda n: n > 1)", {"a": "-1-2-3-|"}))
>>> print(shown.words)
a: 1 at 1 s, 2 at 3 s, 3 at 5 s, completes at 7 s.
a.filter(lambda n: n > 1): 2 at 3 s, 3 at 5 s, completes at 7 s.

A notebook shows it as a picture. `picture` has one for each operator that changes what comes when.
"""

from flow_testing.pictures.drawing import Picture, draw
from flow_testing.pictures.gallery import NoPictureError, picture, scenes, without
from flow_testing.pictures.played import Line, Played, Scene, play

__all__ = [
    "Line",
    "NoPictureError",
    "Picture",
    "Played",
    "Scene",
    "draw",
    "picture",
    "play",
    "scenes",
    "without",
]
