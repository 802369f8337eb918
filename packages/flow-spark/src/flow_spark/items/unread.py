"""The stand-in for the value of a column that was not read."""

from __future__ import annotations

from typing import Any, Final, NoReturn, final

from flow_core.errors import FlowError

__all__ = ["UNREAD", "NotReadError"]


class NotReadError(FlowError):
    """A column was used that was not read, because no stage was found to use it."""


@final
class _Unread:
    """Raises an error whenever it is used, and is printed as ``<not read>``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<not read>"

    def __reduce__(self) -> str:
        return "UNREAD"

    def _fail(self, *_: object) -> NoReturn:
        raise NotReadError(
            "this column was not read, as no stage was seen to use it; "
            "from_dataframe(df, narrow=False) reads all columns"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # as tools ask of every object of a module
            raise AttributeError(name)
        self._fail()

    # Any: what every class says of these methods.
    __eq__: Any = _fail
    __ne__: Any = _fail
    __hash__: Any = _fail
    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __len__ = __iter__ = __contains__ = _fail
    __str__ = __bytes__ = __format__ = __int__ = __float__ = __index__ = __call__ = _fail
    __getitem__ = __neg__ = __pos__ = __abs__ = __invert__ = __round__ = _fail
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _fail
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _fail
    __and__ = __or__ = __xor__ = __rand__ = __ror__ = __rxor__ = __divmod__ = _fail
    __lshift__ = __rshift__ = __rlshift__ = __rrshift__ = __matmul__ = __rmatmul__ = _fail


UNREAD: Final = _Unread()
