"""Files like those that people have, one function each: it writes the file, and says what is right for it.

Each is read right, or refused with a message that says what to do. Unless a function says otherwise, a file has forty
rows, an hour or a day apart, with a temperature and a load.
"""

import datetime as dt
import gzip
import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.data_files import write_xlsx

START = dt.datetime(2024, 1, 30)
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


@dataclass(frozen=True)
class Expected:
    """What is in a file: the options that one would give, and what is then read; or what is said to refuse it."""

    path: Path
    target: str = "load"
    options: dict[str, Any] = field(default_factory=dict)
    times: list[str] | None = None
    targets: list[float] | None = None
    columns: dict[str, list[float]] | None = None
    note: str = ""  # among what is said of the file
    left_out: str = ""
    refusal: str = ""  # what is said without the `remedy`
    remedy: dict[str, Any] = field(default_factory=dict)


MESSY: dict[str, Callable[[Path], Expected]] = {}


def messy(make: Callable[[Path], Expected]) -> Callable[[Path], Expected]:
    MESSY[make.__name__] = make
    return make


def hours(count: int = 40, start: dt.datetime = START, step: dt.timedelta = HOUR) -> list[dt.datetime]:
    return [start + t * step for t in range(count)]


def loads(count: int = 40) -> list[float]:
    """From 900 to 1400, with two decimals that are not all 0."""
    return [round(1150.0 + 250.0 * math.sin(t / 4.0) + 0.25 * (t % 3), 2) for t in range(count)]


def temps(count: int = 40) -> list[float]:
    return [round(10.0 * math.cos(t / 7.0), 1) for t in range(count)]


def iso(times: list[dt.datetime]) -> list[str]:
    return [time.isoformat(sep=" ") for time in times]


def lines(header: str, rows: list[str], end: str = "\n") -> str:
    return end.join([header, *rows]) + end


def comma(value: float, thousands: str = "") -> str:
    """A number with a decimal comma."""
    return f"{value:,.2f}".replace(",", "t").replace(".", ",").replace("t", thousands)


def plain(path: Path, form: str, times: list[dt.datetime], target: str = "load") -> Path:
    """A CSV file with times in a form, temperatures and loads."""
    rows = zip(times, temps(len(times)), loads(len(times)), strict=True)
    path.write_text(lines(f"when,temp,{target}", [f"{time:{form}},{temp},{load}" for time, temp, load in rows]))
    return path


# ---- dialects and encodings ------------------------------------------------------------------------------------------


@messy
def german_export(folder: Path) -> Expected:
    """A grid operator's export from a German Excel: semicolons, decimal commas, points for thousands, Latin-1, CRLF."""
    path, times = folder / "Last.csv", hours()
    rows = [f"{t:%d.%m.%Y %H:%M};{comma(c)};{comma(y, '.')}" for t, c, y in zip(times, temps(), loads(), strict=True)]
    path.write_bytes(lines("Zeit;Außentemperatur (°C);Last [MW]", rows, end="\r\n").encode("cp1252"))
    return Expected(
        path, "Last [MW]", {}, iso(times), loads(), {"Außentemperatur (°C)": temps()}, note="decimal commas"
    )


@messy
def french_export(folder: Path) -> Expected:
    """A French open-data file: UTF-8 with a mark, semicolons, narrow spaces for thousands, dates with slashes."""
    path, times = folder / "conso.csv", hours()
    rows = [
        f"{t:%d/%m/%Y %H:%M};{comma(c)};{comma(y, chr(0x202F))}"
        for t, c, y in zip(times, temps(), loads(), strict=True)
    ]
    path.write_bytes(lines("date;température;load", rows).encode("utf-8-sig"))
    return Expected(path, "load", {}, iso(times), loads(), {"température": temps()}, note="day-first")


@messy
def american_export(folder: Path) -> Expected:
    """A spreadsheet saved as CSV in the United States: month first, AM and PM, thousands in quotation marks."""
    path, times = folder / "load.csv", hours()
    clock = [f"{t.month}/{t.day}/{t.year} {t:%I:%M %p}" for t in times]
    rows = [f'{t},{c},"{y:,.2f}"' for t, c, y in zip(clock, temps(), loads(), strict=True)]
    path.write_text(lines("Date,temp,load", rows))
    return Expected(path, "load", {}, iso(times), loads(), {"temp": temps()}, note="month-first")


@messy
def swiss_export(folder: Path) -> Expected:
    """A Swiss export: tabs, apostrophes for thousands, a decimal point, two-digit years."""
    path, times = folder / "verbrauch.tsv", hours()
    swiss = [f"{y:,.2f}".replace(",", "'") for y in loads()]
    rows = [f"{t:%d.%m.%y %H:%M}\t{c}\t{y}" for t, c, y in zip(times, temps(), swiss, strict=True)]
    path.write_text(lines("zeit\ttemp\tload", rows))
    return Expected(path, "load", {}, iso(times), loads(), {"temp": temps()}, note="tabs between cells")


@messy
def unicode_text_of_excel(folder: Path) -> Expected:
    """What Excel saves as "Unicode text": UTF-16 with tabs; here a unit with a Greek letter."""
    path, times = folder / "sensor.txt", hours()
    rows = [f"{t:%Y-%m-%d %H:%M:%S}\t{c}\t{y}" for t, c, y in zip(times, temps(), loads(), strict=True)]
    path.write_bytes(lines("time\tΔtemp\tload", rows, end="\r\n").encode("utf-16"))
    return Expected(path, "load", {}, iso(times), loads(), {"Δtemp": temps()}, note="utf-16")


@messy
def bars(folder: Path) -> Expected:
    """A dump of a database: bars between cells, a dash for what is missing."""
    path, times = folder / "dump.txt", hours()
    targets = [math.nan if i == 7 else y for i, y in enumerate(loads())]
    cells = [f"{t:%Y-%m-%dT%H:%M:%S}|{'-' if y != y else y}" for t, y in zip(times, targets, strict=True)]
    path.write_text(lines("time|load", cells))
    return Expected(path, "load", {"lags": 1}, [t.isoformat() for t in times], targets, {}, note="bars")


@messy
def columns_by_spaces(folder: Path) -> Expected:
    """A table of an old program: columns padded with spaces."""
    path = folder / "old.dat"
    rows = [f"  {t:>6} {c:>8} {y:>10}" for t, (c, y) in enumerate(zip(temps(), loads(), strict=True))]
    path.write_text(lines("    step     temp       load", rows))
    columns = {"temp": temps(), "step": [float(t) for t in range(40)]}
    return Expected(path, "load", {"features": "temp"}, None, loads(), columns, note="spaces")


@messy
def packed_without_its_ending(folder: Path) -> Expected:
    """A gzipped file that a download tool named .csv."""
    path, times = plain(folder / "download.csv", "%Y-%m-%d %H:%M:%S", hours()), hours()
    path.write_bytes(gzip.compress(path.read_bytes()))
    return Expected(path, "load", {}, iso(times), loads(), {"temp": temps()})


@messy
def thousands_or_decimals(folder: Path) -> Expected:
    """Semicolons, and every number has three digits after a comma: 1,234 may be a thousand or hardly more than one."""
    path = folder / "unclear.csv"
    path.write_text(lines("t;load", [f"{t};{1 + t // 30},{100 + t}" for t in range(40)]))
    right = [(1 + t // 30) * 1000.0 + 100.0 + t for t in range(40)]
    return Expected(
        path,
        options={"features": "t"},
        targets=right,
        refusal="column 'load': '1,100' is 1100 with --decimal point, and 1.1 with --decimal comma",
        remedy={"decimal": "point"},
    )


@messy
def unquoted_decimal_commas(folder: Path) -> Expected:
    """Decimal commas in a file that has commas between its cells: there is no telling which is which."""
    path = folder / "broken.csv"
    path.write_text(lines("t,load", [f"{t},{comma(y)}" for t, y in enumerate(loads())]))
    return Expected(path, refusal="line 2 has 3 cells: expected 2, as in line 1; if commas stand in numbers too")


# ---- dates -----------------------------------------------------------------------------------------------------------


@messy
def decided_after_a_thousand_rows(folder: Path) -> Expected:
    """Quarters of an hour from 1 February, day first: only the 13th, in row 1153, shows that the day is first."""
    times = hours(1200, dt.datetime(2024, 2, 1), dt.timedelta(minutes=15))
    path = plain(folder / "quarters.csv", "%d/%m/%Y %H:%M", times)
    return Expected(path, times=iso(times), targets=loads(1200), note="day-first, as '13/02/2024 00:00' in line 1154")


@messy
def one_week_of_dates(folder: Path) -> Expected:
    """A week in February, in a form that may be read as one day of seven months: no row decides."""
    times = hours(7, dt.datetime(2024, 2, 1), DAY)
    path = plain(folder / "week.csv", "%d/%m/%Y", times)
    return Expected(
        path,
        times=[f"{time:%Y-%m-%d}" for time in times],
        targets=loads(7),
        refusal="is 01 February 2024 with --time-format day-first, and 02 January 2024 with --time-format month-first",
        remedy={"time_format": "day-first"},
    )


@messy
def dates_spoilt_by_a_spreadsheet(folder: Path) -> Expected:
    """Half of the dates turned round by a spreadsheet that read them its own way."""
    times = hours(40, dt.datetime(2024, 2, 1), DAY)
    forms = ["%m/%d/%Y" if time.day <= 28 and time.month == 2 else "%d/%m/%Y" for time in times]
    path = folder / "spoilt.csv"
    path.write_text(lines("day,load", [f"{t:{f}},{y}" for t, f, y in zip(times, forms, loads(), strict=True)]))
    return Expected(
        path,
        options={"lags": 1, "features": ""},
        refusal="is a date in one order of day and month only, unlike '02/13/2024' in line 14",
    )


@messy
def month_names(folder: Path) -> Expected:
    """A laboratory's log: 30-Jan-2024 13:00:00."""
    path = plain(folder / "log.csv", "%d-%b-%Y %H:%M:%S", hours())
    return Expected(path, times=[f"{t:%d-%b-%Y %H:%M:%S}" for t in hours()], targets=loads())


@messy
def hours_that_end_at_24(folder: Path) -> Expected:
    """Hours ending, as power markets count: the last hour of a day is 24:00 of that day."""
    path, times = folder / "market.csv", [t + HOUR for t in hours()]
    shown = [f"{t:%d.%m.%Y %H:%M}" if t.hour else f"{t - DAY:%d.%m.%Y} 24:00" for t in times]
    path.write_text(lines("he,load", [f"{t},{y}" for t, y in zip(shown, loads(), strict=True)]))
    return Expected(path, options={"lags": 1}, times=iso(times), targets=loads())


@messy
def date_and_clock_apart(folder: Path) -> Expected:
    """The air-quality file of UCI: a date, a clock with points, decimal commas, blank columns and rows at the end."""
    path, times = folder / "AirQuality.csv", hours()
    rows = [
        f"{t:%d/%m/%Y};{t:%H.%M.%S};{comma(c)};{comma(y)};;" for t, c, y in zip(times, temps(), loads(), strict=True)
    ]
    path.write_text(lines("Date;Time;T;load;;", [*rows, ";;;;;", ";;;;;"]))
    return Expected(
        path, times=iso(times), targets=loads(), columns={"T": temps()}, note="times from 'Date' and 'Time'"
    )


@messy
def milliseconds_since_1970(folder: Path) -> Expected:
    """An Internet-of-things platform: times are milliseconds since 1970."""
    path, times = folder / "device.csv", hours()
    stamps = [round(t.replace(tzinfo=dt.UTC).timestamp() * 1000) for t in times]
    path.write_text(lines("ts,load", [f"{t},{y}" for t, y in zip(stamps, loads(), strict=True)]))
    return Expected(
        path,
        options={"time": "ts", "calendar": True},
        times=[f"{t}+00:00" for t in iso(times)],
        targets=loads(),
        refusal="line 2, column 'ts' is '1706572800000': expected a date such as 2020-01-31 13:00, for the calendar; "
        "for seconds since 1970 say --time-format seconds",
        remedy={"time_format": "milliseconds"},
    )


@messy
def clocks_that_go_forward(folder: Path) -> Expected:
    """Hourly data of Europe with offsets from UTC, over the change to summer time: 02:00 does not exist."""
    starts = [dt.datetime(2024, 3, 30, tzinfo=dt.UTC) + t * HOUR for t in range(40)]
    change = dt.datetime(2024, 3, 31, 1, tzinfo=dt.UTC)
    shown = [t.astimezone(dt.timezone((2 if t >= change else 1) * HOUR)).isoformat() for t in starts]
    path = folder / "summer.csv"
    path.write_text(lines("time,load", [f"{t},{y}" for t, y in zip(shown, loads(), strict=True)]))
    return Expected(path, options={"lags": 1}, times=shown, targets=loads())


@messy
def zones_in_some_rows(folder: Path) -> Expected:
    """Two sources put together, of which one writes the time zone and the other does not."""
    path, times = folder / "joined.csv", hours()
    shown = [f"{t.isoformat()}{'Z' if i < 20 else ''}" for i, t in enumerate(times)]
    path.write_text(lines("time,load", [f"{t},{y}" for t, y in zip(shown, loads(), strict=True)]))
    return Expected(
        path,
        options={"lags": 1},
        refusal="line 22, column 'time' is '2024-01-30T20:00:00': expected a time with an offset from UTC",
        remedy={"malformed": "skip"},
        targets=loads()[:20],
    )


# ---- headers ---------------------------------------------------------------------------------------------------------


@messy
def data_logger(folder: Path) -> Expected:
    """A weather station: a title, its place, a blank line, the header, units, and a line at the end."""
    path, times = folder / "station.csv", hours()
    above = "Weather station export\nStation,Uccle,,\nCreated,2024-03-01,,\n\n"
    rows = [f"{t:%Y-%m-%d %H:%M:%S},{c},{y},ok" for t, c, y in zip(times, temps(), loads(), strict=True)]
    path.write_text(above + lines("time,temp,load,status", ["(UTC),°C,W/m²,", *rows]))
    return Expected(
        path,
        times=iso(times),
        targets=loads(),
        columns={"temp": temps(), "status": ["ok"] * 40},
        note="units in line 6",
    )


@messy
def header_in_a_comment(folder: Path) -> Expected:
    """What numpy.savetxt writes: the names stand behind a # sign."""
    path = folder / "savetxt.csv"
    rows = [f"{t:.18e},{y:.18e}" for t, y in enumerate(loads())]
    path.write_text(lines("# made by a script\n# step,load", rows))
    return Expected(
        path, options={"features": "step"}, targets=loads(), columns={"step": [float(t) for t in range(40)]}
    )


@messy
def index_of_pandas(folder: Path) -> Expected:
    """DataFrame.to_csv with its index: a first column without a name, which counts the rows."""
    path = folder / "frame.csv"
    rows = [f"{t},{c},{y}" for t, (c, y) in enumerate(zip(temps(), loads(), strict=True))]
    path.write_text(lines(",temp,load", rows))
    return Expected(path, targets=loads(), columns={"temp": temps()}, left_out="column 1 (it has no name)")


@messy
def no_header(folder: Path) -> Expected:
    """A file without names."""
    path = folder / "bare.csv"
    path.write_text("\n".join(f"{t},{y}" for t, y in zip(iso(hours()), loads(), strict=True)))
    return Expected(path, refusal="That line looks like data: put a line with the names of the columns above it")


@messy
def name_twice(folder: Path) -> Expected:
    """Two tables joined by hand, with the load in both."""
    path = folder / "joined.csv"
    path.write_text(lines("t,load,load", [f"{t},{y},{y}" for t, y in enumerate(loads())]))
    return Expected(path, refusal="line 1: the header has 'load' twice: give each column a name of its own")


# ---- text in cells ---------------------------------------------------------------------------------------------------


@messy
def words_in_columns(folder: Path) -> Expected:
    """Flags as words, a weather with few values, a station with many, and a holiday that is mostly none."""
    path, times = folder / "words.csv", hours()
    weather = ["sun" if t % 3 else "rain" for t in range(40)]
    rows = [
        f"{time},{t % 7 == 0},{weather[t]},S{t:03d},{'New Year' if t == 5 else 'None'},{y}"
        for t, (time, y) in enumerate(zip(iso(times), loads(), strict=True))
    ]
    path.write_text(lines("time,open,weather,station,holiday,load", rows))
    columns = {
        "open": [str(t % 7 == 0) for t in range(40)],
        "weather": weather,
        "station": [f"S{t:03d}" for t in range(40)],
        "holiday": ["New Year" if t == 5 else "None" for t in range(40)],
    }
    return Expected(path, times=iso(times), targets=loads(), columns=columns)


@messy
def mostly_words(folder: Path) -> Expected:
    """A table of sales with more words than numbers, and an index without a name."""
    path = folder / "sales.csv"
    cells = [(str(t), "Leuven", "north", "open" if t % 2 else "", "cash", str(y)) for t, y in enumerate(loads())]
    path.write_text(lines(",city,region,state,paid,load", [",".join(row) for row in cells]))
    columns = dict(
        zip(("city", "region", "state", "paid"), list(map(list, zip(*cells, strict=True)))[1:5], strict=True)
    )
    return Expected(path, targets=loads(), columns=columns, left_out="it has no name")


@messy
def a_sensor_that_fails(folder: Path) -> Expected:
    """An instrument that writes ERR into its column when it fails."""
    path, times = folder / "errors.csv", hours()
    rows = [
        f"{t},{c},{'ERR' if i == 25 else y}"
        for i, (t, c, y) in enumerate(zip(iso(times), temps(), loads(), strict=True))
    ]
    path.write_text(lines("time,temp,load", rows))
    return Expected(
        path,
        refusal="line 27, column 'load' is 'ERR': expected a number, or nothing; correct it, or leave such rows out "
        "with --malformed skip",
        remedy={"malformed": "skip"},
        targets=[y for i, y in enumerate(loads()) if i != 25],
    )


# ---- other files -----------------------------------------------------------------------------------------------------


@messy
def workbook_with_sheets(folder: Path) -> Expected:
    """A workbook with a cover, and the data on a sheet with a title and units above them."""
    rows = [("Load of the region",), (), ("Date", "temp", "load"), ("", "°C", "MW")]
    data = list(zip(hours(), temps(), loads(), strict=True))
    path = write_xlsx(folder / "book.xlsx", {"Read me": [("About",)], "2024": [*rows, *data]})
    return Expected(
        path,
        times=iso(hours()),
        targets=loads(),
        columns={"temp": temps()},
        refusal="book.xlsx has 2 sheets: choose one with --sheet. They are Read me, 2024",
        remedy={"sheet": "2024"},
        note="units in line 4",
    )


@messy
def json_lines(folder: Path) -> Expected:
    """A log of events, one JSON object per line, of which some lack a key."""
    path, times = folder / "events.jsonl", hours()
    objects = [
        {"time": t, "load": y, "ok": True} | ({} if i == 3 else {"temp": c})
        for i, (t, c, y) in enumerate(zip(iso(times), temps(), loads(), strict=True))
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    columns = {"temp": [math.nan if i == 3 else c for i, c in enumerate(temps())], "ok": ["true"] * 40}
    return Expected(path, times=iso(times), targets=loads(), columns=columns)


@messy
def json_list(folder: Path) -> Expected:
    """What a web service answers: one list of objects."""
    path, times = folder / "answer.json", hours()
    objects = [{"time": t, "temp": c, "load": y} for t, c, y in zip(iso(times), temps(), loads(), strict=True)]
    path.write_text(json.dumps(objects, indent=1))
    return Expected(path, times=iso(times), targets=loads(), columns={"temp": temps()})


@messy
def archive_named_csv(folder: Path) -> Expected:
    """A zip archive under the name of what is in it."""
    path = folder / "archive.csv"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("load.csv", "t,load\n1,2\n")
    return Expected(path, refusal="It looks like a zip archive or a workbook: unpack it, or give it its ending .xlsx")


@messy
def text_named_xls(folder: Path) -> Expected:
    """What many web sites call .xls: text with tabs."""
    path = folder / "report.xls"
    path.write_text("time\tload\n2024-01-01\t1\n")
    return Expected(
        path, refusal="is not a workbook, although its name says so: if it is text, give it the ending .csv"
    )
