"""Saved files with a few things changed and their checksums made right: refused in a sentence, or safe; never large.

Headers get other numbers, words, lists and depths, payloads other bits, numbers and lengths, and both become what
unpacks to a thousand times their size. What is taken has to go on; what it takes in memory, taken or refused, is at
most fifty times the file and 200 MB.
"""

import contextlib
import hashlib
import json
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from driftgp import AGP, Online, checkpoint
from driftgp.fleet import Fleet
from driftgp.forecasting import Forecaster
from driftgp.runs import read_checkpoint
from tests.fuzz import files
from tests.fuzz.states import FLOATS, WHOLES, _leaves, _put, go_on

RNG = np.random.default_rng(2)
X = RNG.normal(size=(450, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=450)
TIMES, MEGABYTES = 50, 200
VALUES: tuple[Any, ...] = (
    None, "", "x", [], {}, True, -1, 0, 1, 2, 3, 17, 10**3, 10**5, 10**6, 10**9, 2**31, 2**63, 10**400, 0.5, -1.0,
    1e308,
    float("nan"), float("inf"), -float("inf"), [0] * 10, [[]], {"is": "AGP"}, "é" * 300, [None] * 10**5, [[]] * 10**5,
)  # fmt: skip
FRAME = struct.Struct("<8sHIQ")


def a_frame(rows: int) -> list[dict[str, Any]]:
    return [{"a": float(x[0]), "sky": "rain" if x[1] > 0.0 else "clear"} for x in X[:rows]]


@cache
def originals() -> dict[str, list[bytes]]:
    """Files of each kind, of several ages."""
    young, old, named = Online(effort="low"), Online(effort="low"), Online(effort="low")
    young.update(X[:30], Y[:30])
    old.update(X, Y)
    for row, y in zip(a_frame(20), Y, strict=False):
        named.update(row, y)
    model = AGP(inducing=3, window=8)
    bare = checkpoint.to_bytes(model, model.update(model.init(X[:0], Y[:0]), X[:30], Y[:30]), {"row": 30})
    fleets = [Fleet(), Fleet(model)]
    for fleet in fleets:
        fleet.update([f"k{i % 5}" for i in range(60)], X[:60], Y[:60])
    fleets[1].warm(X[:20], Y[:20])
    forecasters = [Forecaster(horizon=4, season=6), Forecaster(horizon=3), Forecaster(horizon=2, known=("a",))]
    forecasters[0].update(Y[:80])
    forecasters[1].update(Y[:90], np.datetime64("2026-01-01") + np.arange(90) * np.timedelta64(1, "h"))
    forecasters[2].update(Y[:20], known=np.ones((20, 1)))
    shops = Forecaster(horizon=2, target="y", key="shop", known=("sky",), past=("a",), holidays=["2026-01-01"])
    shops.update([row | {"y": float(Y[i]), "shop": f"s{i % 2}"} for i, row in enumerate(a_frame(140))])
    forecasters.append(shops)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("table.csv").write_bytes(files.CSV)
        for name, more in (("one", ()), ("many", ("--key", "key", "--horizon", "3", "--lags", "2"))):
            code, said = files.run("table.csv", "--target", "y", *more, "--checkpoint", name)
            assert code == 0, said
        runs = [Path(name).read_bytes() for name in ("one", "many")]
    return {
        "Online": [young.to_bytes(), old.to_bytes(), named.to_bytes()],
        "checkpoint": [bare],
        "Fleet": [fleet.to_bytes() for fleet in fleets],
        "Forecaster": [forecaster.to_bytes() for forecaster in forecasters],
        "run": runs,
    }


# ---- what is changed -------------------------------------------------------------------------------------------------


def change(rng: np.random.Generator, data: bytes) -> bytes:
    """Change a header or a payload, and seal it anew."""
    fields = FRAME.unpack_from(data)
    end = FRAME.size + fields[2]
    text, payload = zlib.decompress(data[FRAME.size : end]), data[end:-32]
    kind = rng.integers(0, 6)
    if kind <= 2:
        header = json.loads(text)
        for _ in range(rng.integers(1, 4)):
            leaves = list(_leaves(header))
            if leaves:
                _put(header, leaves[rng.integers(len(leaves))], deepcopy(VALUES[rng.integers(len(VALUES))]))
        text = json.dumps(header).encode()
    elif kind == 3:  # a header that unpacks to far more than the file
        bomb = (b"[" + b"[]," * 10**7 + b"[]]", b'"' + b"x" * 10**8 + b'"', b"[" * 10**5)[rng.integers(3)]
        name = (b"keys", b"extra", b"settings", b"rows")[rng.integers(4)]
        text = text[:-1] + b',"' + name + b'":' + bomb + b"}"
    elif kind == 4:
        payload = repacked(rng, payload)
    else:
        payload = files.change(rng, payload)
    packed = zlib.compress(text, int(rng.choice([1, 9])))
    body = FRAME.pack(fields[0], fields[1], len(packed), len(payload)) + packed + payload
    return body + hashlib.sha256(body).digest()


def repacked(rng: np.random.Generator, payload: bytes) -> bytes:
    """Change numbers within a payload, whether it is compressed or not, or have it unpack to very much."""
    inflator = zlib.decompressobj()
    try:
        data, rest = inflator.decompress(payload), inflator.unused_data
    except zlib.error:
        data, rest = payload, None
    if rest is not None and rng.random() < 0.2:
        return zlib.compress(bytes(10**8), 9)
    words = np.frombuffer(data[: len(data) // 8 * 8], np.float64).copy()
    for _ in range(rng.integers(1, 4)):
        if words.size:
            place = rng.integers(words.size)
            wholes = rng.random() < 0.3
            words[place] = FLOATS[rng.integers(len(FLOATS))]
            if wholes:
                words.view(np.int64)[place] = WHOLES[rng.integers(len(WHOLES))]
    data = words.tobytes() + data[len(words) * 8 :]
    return data if rest is None else zlib.compress(data) + rest


# ---- what is done with it --------------------------------------------------------------------------------------------


def online(data: bytes) -> None:
    taken = Online.from_bytes(data)
    repr(taken)
    if taken.begun and not taken._streams.named:
        go_on(taken.model, taken.state)
        D, P = taken.state.layout.inputs, taken.state.layout.columns
        targets = np.full((5, P), 0.5) if taken.state.layout.outputs is not None else np.full(5, 0.5)
        check(taken.evaluate(np.resize(X, (5, D)), targets))
    taken.to_bytes()


def bare(data: bytes) -> None:
    restored = checkpoint.restore(None, data)
    go_on(restored.state.model, restored.state)


def fleet(data: bytes) -> None:
    taken = Fleet.from_bytes(data)
    states_go_on(taken)
    taken.to_bytes()


def states_go_on(taken: Online | Fleet) -> None:
    for series in list(taken._streams.series.values())[:3]:
        if series.slot is not None:
            state = series.slot.stack.state(series.slot.number)
            go_on(state.model, state)


def forecaster(data: bytes) -> None:
    taken = Forecaster.from_bytes(data)
    columns = taken.settings.columns
    if not taken.keys and not taken._reader.timed and columns in ((), ("a",)):
        taken.update(
            Y[:2], **({"known": np.ones((2, 1))} if taken.known else {"past": np.ones((2, 1))} if columns else {})
        )
    if taken.rows > taken.horizon and not taken.known:
        taken.forecast()
    taken.to_bytes()


def a_run(data: bytes) -> None:
    states_go_on(read_checkpoint(data).stream)


KINDS: dict[str, Callable[[bytes], None]] = {
    "Online": online,
    "checkpoint": bare,
    "Fleet": fleet,
    "Forecaster": forecaster,
    "run": a_run,
}


def check(forecast: Any) -> None:
    low, high = forecast.interval(0.9)
    assert np.isfinite(forecast.mean).all(), f"not finite: {forecast.mean}"
    assert (low <= high).all(), f"out of order: {low}, {high}"


def peak(work: Callable[[], Any]) -> float:
    """Megabytes that some work takes at its peak, beyond what was there before; 0 where nobody can tell."""
    if sys.platform != "linux":
        work()
        return 0.0
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak from now on
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def resident(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


def case(rng: np.random.Generator) -> str:
    """Change a file of some kind, and read it."""
    return read(list(KINDS)[rng.integers(len(KINDS))], rng)


def read(kind: str, rng: np.random.Generator) -> str:
    """Change a file of this kind, and read it."""
    data = originals()[kind][rng.integers(len(originals()[kind]))]
    changed, outcome = change(rng, data), [f"{kind}: refused"]

    def work() -> None:
        with contextlib.suppress(ValueError):
            KINDS[kind](changed)
            outcome[0] = f"{kind}: taken"

    taken = peak(work)
    most = TIMES * len(changed) / 1e6 + MEGABYTES
    assert taken <= most, f"{kind}: {len(changed)} bytes took {taken:.0f} MB, of at most {most:.0f}"
    return outcome[0]
