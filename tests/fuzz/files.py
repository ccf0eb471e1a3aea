"""Files with a few bytes changed, through `driftgp run`: an answer or one sentence, and nothing else."""

import contextlib
import gzip
import io
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl

from driftgp import cli

OPTIONS = ("--target", "y", "--model", "persistence", "--warmup", "5")
HEADER = "when,x,y,key"
LINES = [f"2024-01-{1 + t // 24:02d}T{t % 24:02d}:00,{(t * 7) % 11 / 3:.4f},{t % 5 - 0.5},k{t % 3}" for t in range(60)]
CSV = "\n".join([HEADER, *LINES, ""]).encode()
TOML = b'target = "y"\nmodel = "persistence"\nwarmup = 5\nlags = 3\nseasonal-lags = [24]\ncalendar = true\n'
TOKENS = (
    b"\x00", b"\n", b"\r", b"\r\n", b'"', b",", b";", b"\t", b"-", b"nan", b"inf", b"1e999", b"-1e-999", b"\xff\xfe",
    b"\xef\xbb\xbf", b"9" * 400, b"=1+1", b"0x1F", b"1_000", b"9999-12-31T23:59:59", b"0001-01-01", b"2024-02-30",
    b"1e308", b"\xe2\x80\xa8", b"k0", b"true", b"[", b"{", b"null", b" " * 50,
)  # fmt: skip


@cache
def originals() -> dict[str, bytes]:
    """A file of each kind that is read."""
    table = pl.read_csv(io.BytesIO(CSV), try_parse_dates=True)
    parquet, workbook = io.BytesIO(), io.BytesIO()
    table.write_parquet(parquet)
    table.write_excel(workbook)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("table.csv").write_bytes(CSV)
        run("table.csv", *OPTIONS, "--checkpoint", "run.ckpt", "--output", "out.csv")
        saved = Path("run.ckpt").read_bytes()
    return {
        "table.csv": CSV,
        "table.csv.gz": gzip.compress(CSV),
        "table.parquet": parquet.getvalue(),
        "table.xlsx": workbook.getvalue(),
        "run.toml": TOML,
        "run.ckpt": saved,
    }


def change(rng: np.random.Generator, data: bytes) -> bytes:
    """Change some bytes: bits, tokens, cuts, repeats."""
    for _ in range(rng.integers(1, 5)):
        place = int(rng.integers(len(data) + 1))
        other = int(min(len(data), place + rng.integers(1, 200)))
        kind = rng.integers(0, 6)
        if kind == 0 and data:
            at = min(place, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ (1 << rng.integers(8))]) + data[at + 1 :]
        elif kind == 1:
            data = data[:place] + TOKENS[rng.integers(len(TOKENS))] + data[place:]
        elif kind == 2:
            data = data[:place] + data[other:]
        elif kind == 3:
            data = data[:other] + data[place:other] * int(rng.integers(1, 20)) + data[other:]
        elif kind == 4:
            data = data[:place] + rng.bytes(other - place) + data[other:]
        elif rng.random() < 0.3:
            data = data[:place]
    return data


def run(*arguments: str) -> tuple[int, str]:
    """The command in this process: its exit code and what it said on standard error."""
    said = io.StringIO()
    code: Any = 0
    with (
        mock.patch.object(sys, "argv", ["driftgp", "run", *arguments]),
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
    return 0 if code is None else code, said.getvalue()


def case(rng: np.random.Generator) -> str:
    """Change a file and run it."""
    name = list(originals())[rng.integers(len(originals()))]
    data = originals()[name]
    packed = name.endswith(".gz") and rng.random() < 0.7  # else the archive itself is changed
    data = gzip.compress(change(rng, gzip.decompress(data))) if packed else change(rng, data)
    more: tuple[str, ...] = ("--malformed", "skip") if rng.random() < 0.3 else ()
    if rng.random() < 0.3:
        more += ("--key", "key")
    if rng.random() < 0.3:
        more += ("--horizon", "3", "--lags", "2")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("table.csv").write_bytes(CSV)
        Path(name).write_bytes(data)
        if name == "run.toml":
            code, said = run("table.csv", "--config", name, "--output", "out.csv")
        elif name == "run.ckpt":
            code, said = run("table.csv", *OPTIONS, "--checkpoint", name, "--output", "out.csv")
        else:
            code, said = run(name, *OPTIONS, *more, "--output", "out.csv")
        left = [each.name for each in Path().iterdir() if each.suffix in (".lock", ".part")]
    assert code in (0, 2), f"{name}: exit code {code}: {said}"
    assert code == 0 or said.strip(), f"{name}: refused without a word"
    assert "Traceback" not in said, said
    assert not left, f"{name} left {left}"
    return f"{name}: {'read' if code == 0 else 'refused'}"
