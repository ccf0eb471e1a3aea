"""The report: sections with a command, tables and pictures, as Markdown and as one HTML page that holds everything."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from driftgp.base import files
from driftgp.engine import describe
from driftgp.gp.agp import AGP
from driftgp.plots import base as plots
from experiments import environment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDER = "Beside what the paper says"
_PREFACE = (
    "Every cell has this project's number and then, in brackets, the paper's; a dash means that the paper has none."
    " All predictions are one step ahead: predict, score, then learn. Coverage is the share of samples within two "
    "standard deviations of the mean, which the paper calls its 95 % interval. Times are seconds of CPU for one "
    "series, predicting and learning after the warm-up, on one thread, compilation not included. The paper's times "
    "are of the updates alone, on another machine, all in PyTorch. Here AGP is C++ and the rivals are compiled by "
    "JAX. The ratio of fast-AGP to AGP compares best."
)
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25rem 0.7rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
div.wide { overflow-x: auto; }
img { max-width: 100%; }
figcaption { color: #555; }
pre { background: #f4f4f4; padding: 0.6rem; overflow-x: auto; }
"""


@dataclass(frozen=True)
class Heading:
    """The title of a report, and a note on all of its numbers."""

    title: str
    preface: str


PAPER = Heading("The paper's experiments, reproduced", _PREFACE)
BEYOND = Heading(
    "Beyond the paper",
    "All predictions are one step ahead: predict, score, then learn. Times are microseconds of CPU a sample, warm-up "
    "included and compilation not. Settings are the same for all streams: nothing is tuned to any of them.",
)


@dataclass(frozen=True)
class Table:
    """A heading, the names of the columns, and rows of cells that are already written out."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A figure, the name of its file, and what it shows."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Section:
    """One experiment."""

    title: str
    command: str
    paragraphs: Sequence[str]
    tables: Sequence[Table]
    pictures: Sequence[Picture] = ()
    remarks: Sequence[str] = field(default_factory=tuple)  # where what is found here is, or is not, what the paper says


def number(value: float | None, form: str = "{:.4f}") -> str:
    """Write a number, or a dash for a missing one."""
    return "–" if value is None or value != value else form.format(value)


def cell(ours: float | None, paper: float | None, form: str = "{:.4f}") -> str:
    """Write this project's number, and the paper's in brackets.

    >>> cell(0.0613, 0.063), cell(0.0855, None)
    ('0.0613 (0.0630)', '0.0855 (–)')
    """
    return f"{number(ours, form)} ({number(paper, form)})"


# ---- Markdown ------------------------------------------------------------------------------------------------------


def write_markdown(path: Path, sections: Sequence[Section], heading: Heading = PAPER) -> None:
    """Write the report, and its pictures into the folder `images` beside it."""
    images = path.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    for section in sections:
        for picture in section.pictures:
            plots.save(picture.figure, images / f"{picture.name}.png")
    files.write_atomically(path, markdown(sections, heading).encode())


def markdown(sections: Sequence[Section], heading: Heading = PAPER) -> str:
    """The report as Markdown."""
    blocks = [f"# {heading.title}", heading.preface, "\n".join(f"- {line}" for line in _circumstances())]
    for section in sections:
        blocks += [f"## {section.title}", *section.paragraphs]
        for table in section.tables:
            blocks += [f"### {table.title}", f"```sh\n{section.command}\n```", _markdown_table(table)]
        if section.remarks:
            blocks += [f"### {ORDER}"]
            blocks += ["\n".join(f"- {remark}" for remark in section.remarks)]
        for picture in section.pictures:
            blocks += [f"![{picture.caption}](images/{picture.name}.png)", f"*{picture.caption}*"]
    return "\n\n".join(blocks) + "\n"


def _markdown_table(table: Table) -> str:
    rule = ["---", *["---:"] * (len(table.head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [table.head, rule, *table.rows])


def _circumstances() -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in environment.versions().items())
    return [
        f"versions: {versions}",
        f"machine: {environment.machine()}",
        f"engine: {describe(AGP())}; precision: float64",
    ]


# ---- HTML ----------------------------------------------------------------------------------------------------------


def write_html(path: Path, sections: Sequence[Section], heading: Heading = PAPER) -> None:
    """Write the report as one page that holds its pictures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomically(path, page(sections, heading).encode())


def page(sections: Sequence[Section], heading: Heading = PAPER) -> str:
    """The report as HTML."""
    body = [_element("h1", heading.title), _element("p", heading.preface), _list(_circumstances())]
    for section in sections:
        body += [_element("h2", section.title), *(_element("p", text) for text in section.paragraphs)]
        for table in section.tables:
            body += [_element("h3", table.title), _element("pre", section.command), _html_table(table)]
        if section.remarks:
            body += [_element("h3", ORDER), _list(section.remarks)]
        body += [_figure(picture) for picture in section.pictures]
    head = f'<meta charset="utf-8"><title>{html.escape(heading.title)}</title><style>{STYLE}</style>'
    lines = "\n".join(body)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{lines}\n</body></html>\n'


def _element(name: str, text: str) -> str:
    return f"<{name}>{html.escape(text)}</{name}>"


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(_element('li', line) for line in lines)}</ul>"


def _html_table(table: Table) -> str:
    head = "".join(_element("th", name) for name in table.head)
    rows = "".join(f"<tr>{''.join(_element('td', entry) for entry in row)}</tr>" for row in table.rows)
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _figure(picture: Picture) -> str:
    buffer = io.BytesIO()
    picture.figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode()
    caption = html.escape(picture.caption)
    image = f'<img alt="{caption}" src="data:image/png;base64,{data}">'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"
