"""The time zones that a Spark session may have, as Python has them."""

from __future__ import annotations

import datetime
import functools
import re
import zoneinfo
from collections.abc import Callable
from typing import Final, final

__all__ = ["zone_of"]

_SHORT: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "UT": "UTC",
    "VST": "Asia/Ho_Chi_Minh",
    "Z": "UTC",
}
"""Short names of time zones in Java, which prefers them to those of regions
(``ZoneId.SHORT_IDS``)."""

_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d\d?)"
    r"(?::?(?P<minutes>\d\d|(?<=:)\d))?(?::?(?P<seconds>\d\d))?"
)
"""An offset as Java writes it, or with one digit, which Spark accepts, too."""

_SYSTEM_V: Final = re.compile(r"SystemV/[A-Z]{3}(?P<hours>\d\d?)(?P<summer>[A-Z]{3})?")
_HOUR: Final = datetime.timedelta(hours=1)
_NONE: Final = datetime.timedelta(0)


@functools.lru_cache(maxsize=64)
def zone_of(name: str) -> datetime.tzinfo:
    """Return the time zone that ``spark.sql.session.timeZone`` names, in any form that Spark takes.

    Args:
        name: a region; an offset, such as ``+8`` or ``UTC+01:30``; or a name that only Java has,
            such as ``PST`` or ``SystemV/PST8PDT``.

    Raises:
        ValueError: if Python does not know the region.
    """
    name = _SHORT.get(name, name)
    if name == "UTC":
        return datetime.UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes, seconds = (
            int(offset[part] or 0) for part in ("hours", "minutes", "seconds")
        )
        ahead = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return datetime.timezone(-ahead if offset["sign"] == "-" else ahead)
    old = _SYSTEM_V.fullmatch(name)
    if old is not None:
        behind = -int(old["hours"]) * _HOUR
        return _SystemV(name) if old["summer"] else datetime.timezone(behind)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(
            f"Python knows no time zone {name!r}, which is that of the Spark session: set another "
            "one, spark.conf.set('spark.sql.session.timeZone', 'UTC'), or install tzdata where "
            "items are made"
        ) from error


@final
class _SystemV(datetime.tzinfo):
    """American time as it was before 1987, which Java has for all years and Python does not have.

    Args:
        name: a name such as ``SystemV/EST5EDT``.
    """

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._standard: Final = -int(name[11:-3]) * _HOUR

    def utcoffset(self, when: datetime.datetime | None) -> datetime.timedelta | None:
        return None if when is None else self._standard + self._saved(when)

    def dst(self, when: datetime.datetime | None) -> datetime.timedelta | None:
        return None if when is None else self._saved(when)

    def tzname(self, when: datetime.datetime | None) -> str | None:
        if when is None:
            return None
        return self._name[-3:] if self._saved(when) else self._name[8:11]

    def fromutc(self, when: datetime.datetime) -> datetime.datetime:
        standard = when + self._standard
        begins, ends = _summer(standard.year)
        ends -= _HOUR
        plain = standard.replace(tzinfo=None)
        if begins <= plain < ends:
            return standard + _HOUR
        return standard.replace(fold=1) if ends <= plain < ends + _HOUR else standard

    def __repr__(self) -> str:
        return f"zone_of({self._name!r})"

    def __reduce__(self) -> tuple[Callable[[str], datetime.tzinfo], tuple[str]]:
        return zone_of, (self._name,)

    def _saved(self, when: datetime.datetime) -> datetime.timedelta:
        begins, ends = _summer(when.year)
        # Of two readings of a clock, and of none, the first is the one before the change.
        if when.fold:
            ends -= _HOUR
        else:
            begins += _HOUR
        return _HOUR if begins <= when.replace(tzinfo=None) < ends else _NONE


def _summer(year: int) -> tuple[datetime.datetime, datetime.datetime]:
    """Return when clocks change, at two o'clock: mostly the last Sundays of April and October."""
    april = datetime.datetime(year, 4, 30, 2)  # noqa: DTZ001 - what a clock shows
    october = april.replace(month=10, day=31)
    if year == 1974:
        april, october = april.replace(month=1, day=6), october.replace(month=11, day=24)
    elif year == 1975:
        april = april.replace(month=2, day=23)
    return _sunday(april), _sunday(october)


def _sunday(last: datetime.datetime) -> datetime.datetime:
    return last - datetime.timedelta(days=last.isoweekday() % 7)
