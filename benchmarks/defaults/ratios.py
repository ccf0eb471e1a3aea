"""The table of README.md and of docs/when.md: errors as a share of LightGBM's, stream by stream."""

from pathlib import Path

import numpy as np

from benchmarks.defaults.kept import LIGHTGBM, Kept, kept
from benchmarks.defaults.streams import TEN
from benchmarks.defaults.tables import NOTHING, between
from benchmarks.measured import table

BEGIN, END = "<!-- ratios: python -m benchmarks.defaults --tables -->", "<!-- end of ratios -->"
COLUMNS = {
    "medium": "driftgp",
    "low": "low effort",
    "high": "high effort",
    "random forest refitted": "random forest",
    "linear regression": "linear",
    "Ridge fitted once": "Ridge, once",
    "ARF (river)": "river ARF",
    "kNN (river)": "river kNN",
    "persistence": "persistence",
}
PAGES = {Path("README.md"): [name for name in COLUMNS if name not in ("low", "high")], Path("docs/when.md"): [*COLUMNS]}


def write() -> None:
    """Put the table between the marks of each page."""
    for page, methods in PAGES.items():
        between(page, BEGIN, END, markdown(kept(), methods))


def markdown(found: Kept, methods: list[str]) -> str:
    """RMSE of each method / that of LightGBM; a method that was not run on all streams has gaps."""
    shown = [method for method in methods if found.get(method)]
    lines = [[name, *(_cell(found, method, name) for method in shown)] for name in TEN]
    return table(["", *(COLUMNS[method] for method in shown)], lines) + "\n"


def _cell(found: Kept, method: str, name: str) -> str:
    if name not in found[method]:
        return NOTHING
    return f"{np.sqrt(found[method][name]['mse'] / found[LIGHTGBM][name]['mse']):.2f}"
