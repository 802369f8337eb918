"""The fields that a function can read: never too few, and all of them for what is not known."""

import functools
import operator
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from flow_spark.narrowing.fields_read import GivenUpError, Record, fields_read

FIELDS: Final = ("a", "b", "c", "d")
WHOLE: Final = "the record"


def read(function: object, *, by_name: bool = True, by_index: bool = True) -> set[str]:
    names = frozenset(FIELDS if by_name else ())
    return set(fields_read(function, Record(names, FIELDS if by_index else ())))


def by_statement(t: Any) -> Any:
    if t.a:
        return t[1]
    for _ in range(2):
        try:
            total = t.c + 1
        except TypeError:
            total = 0
    return total


def with_default(t: Any, least: int = 3) -> bool:
    return bool(t.a > least)


def matched(t: Any) -> Any:
    match t.a:
        case 1:
            return t.b
        case _:
            return None


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        (lambda t: t.a, "a"),
        (lambda t: t[0], "a"),
        (lambda t: t[-1], "d"),
        (lambda t: t.a + t.b if t.c else t[3], "abcd"),
        (lambda t: (t.a, [t.b, {"x": t.a}]), "ab"),
        (lambda t: f"{t.a!r:>5}{t.b}", "ab"),
        (lambda t: t.a.upper().strip(), "a"),
        (lambda t: [x for x in t.a if x], "a"),
        (lambda t: sum(x * 2 for x in t.b), "b"),
        (lambda t: 1 < t.a < 3 and not t.b, "ab"),
        (lambda t: (n := t.a) * n, "a"),
        (lambda t: len(t.a), "a"),
        (lambda _: 1, ""),
        (by_statement, "abc"),
        (with_default, "a"),
        (matched, "ab"),
        (operator.attrgetter("a", "b.x"), "ab"),
        (operator.itemgetter(0, -1), "ad"),
    ],
)
def test_the_fields_that_are_taken_out_of_the_record_are_found(
    function: object, fields: str
) -> None:
    assert read(function) == set(fields)


def keeps(t: Any) -> Any:
    kept = t
    return kept.b


def in_two_places(t: Any) -> Any:
    other = [t.a, t]
    return other[0]


def asks_for_variables(t: Any) -> Any:
    return locals()["t"].b + t.a


def asks_within(t: Any) -> Any:
    asks = lambda: sys._getframe(1).f_locals  # noqa: E731  # a function within
    return asks(), t.a


def by_traceback(t: Any) -> Any:
    try:
        return t.a / 0
    except ZeroDivisionError as error:
        assert error.__traceback__ is not None
        return error.__traceback__.tb_frame


def changed(t: Any) -> None:
    t.a = 1


def deconstructed(t: Any) -> Any:
    a, *_ = t
    return a


def in_a_case(t: Any) -> Any:
    match t:
        case (1, *_):
            return 1
        case _:
            return 2


def with_arguments(*t: Any) -> Any:
    return t[0]


def with_keywords(t: Any, **more: Any) -> Any:
    return t.a, more


def by_keyword(t: Any, *, least: int = 1) -> Any:
    return t.a > least


def of_two(t: Any, u: Any) -> Any:
    return t.a + u


def generated(t: Any) -> Iterator[Any]:
    yield t.a


async def awaited(t: Any) -> Any:
    return t.a


class Method:
    def __call__(self, t: Any) -> Any:
        return t.a

    def bound(self, t: Any) -> Any:
        return t.a


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t,
        lambda t: str(t),
        lambda t: t == 1,
        lambda t: [*t],
        lambda t: t.a(),
        lambda t: t.other,
        lambda t: t[4],
        lambda t: t[-5],
        lambda t: t[True],
        lambda t: t[t.a],
        lambda t: t[1:2],
        lambda t: t["a"],
        lambda t: t if t.a else None,
        lambda t: lambda: t.a,
        lambda t: [t.a for _ in range(2) for t in t.b],
        lambda t: (u := t) and u.a,
        lambda t: getattr(t, "a"),  # noqa: B009  # a call that gets the record
        lambda t: f"{t}",
        lambda t: t.a + eval("t.b"),
        keeps,
        in_two_places,
        asks_for_variables,
        asks_within,
        by_traceback,
        changed,
        deconstructed,
        in_a_case,
        with_arguments,
        with_keywords,
        by_keyword,
        of_two,
        generated,
        awaited,
        Method(),
        Method().bound,
        functools.partial(of_two, u=1),
        len,
        operator.attrgetter("other"),
        operator.itemgetter(4),
        operator.itemgetter("a"),
        operator.itemgetter(True),
        operator.itemgetter(slice(1)),
        operator.methodcaller("a"),
    ],
)
def test_it_gives_up_for_every_other_use_of_the_record(function: object) -> None:
    with pytest.raises(GivenUpError):
        read(function)


def test_names_and_indexes_count_only_where_they_are_fields() -> None:
    with pytest.raises(GivenUpError):
        read(lambda t: t.a, by_name=False)
    with pytest.raises(GivenUpError):
        read(lambda t: t[0], by_index=False)
    with pytest.raises(GivenUpError):
        read(operator.attrgetter("a"), by_name=False)
    with pytest.raises(GivenUpError):
        read(operator.itemgetter(0), by_index=False)


def test_the_reason_is_given_in_words() -> None:
    with pytest.raises(GivenUpError, match=r"it uses t in line \d+ for something else than one of"):
        read(lambda t: str(t))
    with pytest.raises(GivenUpError, match="not a plain function, but a method"):
        read(Method().bound)


def test_an_instruction_that_is_not_known_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from flow_spark.narrowing import fields_read as module

    known = module._WITHOUT_LOCALS - {"RETURN_VALUE"}
    monkeypatch.setattr(module, "_WITHOUT_LOCALS", known)
    with pytest.raises(GivenUpError, match="the instruction RETURN_VALUE, which is not known here"):
        read(lambda t: t.a + 1)


def test_a_newer_python_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    with pytest.raises(GivenUpError, match="this Python"):
        read(lambda t: t.a)


class Noting:
    """A record that notes which of its fields are taken, or that it was used in another way."""

    def __init__(self, noted: set[str], values: tuple[Any, ...]) -> None:
        object.__setattr__(self, "_noted", noted)
        object.__setattr__(self, "_values", values)

    def __getattribute__(self, name: str) -> Any:
        if name in FIELDS:
            object.__getattribute__(self, "_noted").add(name)
            return object.__getattribute__(self, "_values")[FIELDS.index(name)]
        object.__getattribute__(self, "_noted").add(WHOLE)
        return object.__getattribute__(self, name)

    def __getitem__(self, index: Any) -> Any:
        values: Any = object.__getattribute__(self, "_values")
        is_field = type(index) is int and -len(FIELDS) <= index < len(FIELDS)
        object.__getattribute__(self, "_noted").add(FIELDS[index] if is_field else WHOLE)
        return values[index]

    def _whole(self, *_: object) -> Any:
        object.__getattribute__(self, "_noted").add(WHOLE)
        return object.__getattribute__(self, "_values")[0]

    def __iter__(self) -> Iterator[Any]:
        self._whole()
        return iter(object.__getattribute__(self, "_values"))

    def __len__(self) -> int:
        self._whole()
        return len(FIELDS)

    __str__ = __repr__ = lambda self: str(self._whole())
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _whole
    __hash__ = None  # type: ignore[assignment]
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = _whole
    __contains__ = __bool__ = lambda self, *_: bool(self._whole())


def expression(chance: random.Random, depth: int) -> str:
    """Return Python text of an expression of ``t``, often of its fields and sometimes of itself."""
    if depth <= 0 or chance.random() < 0.15:
        fields = [f"t.{chance.choice(FIELDS)}", f"t[{chance.randrange(-4, 4)}]"]
        return chance.choice([*fields * 4, "1", "'x'", "u", "t" if chance.random() < 0.2 else "2"])

    def part() -> str:
        return expression(chance, depth - 1)

    return chance.choice(
        [
            lambda: f"({part()} + {part()})",
            lambda: f"({part()} < {part()} <= {part()})",
            lambda: f"({part()} if {part()} else {part()})",
            lambda: f"({part()} and {part()} or not {part()})",
            lambda: f"[{part()}, {part()}][{chance.randrange(2)}]",
            lambda: f"({part()} if {part()} else t).{chance.choice(FIELDS)}",
            lambda: f"(u := {part()})",
            lambda: f"[{part()} for u in ({part()}, 3)]",
            lambda: f"[{part()} for t in ({part()}, 3)]",
            lambda: f"{{{part()!s}: 1 for _ in (1,)}}",
            lambda: f"(lambda u: {part()})({part()})",
            lambda: f"(lambda t: {part()})({part()})",
            lambda: f"f'{{{part()}}}'".replace("''", "' '"),
            lambda: f"str({part()})",
            lambda: f"max({part()}, {part()}, key=str)",
            lambda: f"({part()} in [{part()}])",
            lambda: f"(*[{part()}], {part()})",
            lambda: f"str({part()}).upper()",
        ]
    )()


def function(chance: random.Random) -> str:
    """Return the text of a function ``f`` of a record."""
    lines = ["def f(t, u=1):"]
    for _ in range(chance.randrange(3)):
        e = [expression(chance, 2) for _ in range(3)]
        lines += chance.choice(
            [
                [f"    u = {e[0]}"],
                [f"    if {e[0]}:", f"        return {e[1]}"],
                [f"    for u in ({e[0]}, {e[1]}):", f"        {e[2]}"],
                ["    try:", f"        {e[0]}", "    except Exception:", f"        u = {e[1]}"],
                [f"    while u != 5: u, _ = 5, {e[0]}"],
                [f"    t, u = {e[0]}, t"],
                [f"    u, v = {e[0]}, {e[1]}", f"    {e[2]}, v"],
                [f"    del u; u = {e[0]}"],
                [f"    match {e[0]}:", f"        case 1: {e[1]}", f"        case u: {e[2]}"],
            ]
        )
    lines.append(f"    return {expression(chance, 3)}")
    return "\n".join(lines)


def compiled(text: str) -> Callable[[Any], Any] | None:
    made: dict[str, Any] = {}
    try:
        exec(text, made)
    except SyntaxError:  # some parts do not go together, such as := in a comprehension
        return None
    found: Callable[[Any], Any] = made["f"]
    return found


def run(call: Callable[[Any], Any], values: tuple[Any, ...]) -> set[str]:
    """Return what `call` notes of a record with `values`, also if it fails."""
    noted: set[str] = set()
    try:
        str(call(Noting(noted, values)))
    except Exception:  # as sums of numbers and texts do
        pass
    return noted


@pytest.mark.many
@pytest.mark.parametrize("seed", range(256))
def test_a_random_function_reads_no_field_that_was_not_found(seed: int) -> None:
    chance = random.Random(seed)
    found = given_up = 0
    for _ in range(400):
        text = function(chance)
        call = compiled(text)
        if call is None:
            continue
        try:
            fields = read(call)
        except GivenUpError:
            given_up += 1
            continue
        found += 1
        for values in [(1, "x", 2, "y"), (0, "", 5, None), ([1], 2, "x", 0)]:
            assert run(call, values) <= fields, text
    assert found > 20, "too few functions for a test"
    assert given_up > 20, "no function of the kinds that are hard"
