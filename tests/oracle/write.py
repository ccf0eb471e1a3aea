"""Write the oracle: what version 0.1 computes, whose mathematics was in JAX.

This needs commit 7db0cb4 of this repository. From an environment in which that commit is installed, with its extra
`cli` and with DRIFTGP_DATA naming the directory of the data sets:

    python tests/oracle/write.py OUTPUT_FOLDER

writes two files there, in about a quarter of an hour. What is finished is kept in OUTPUT_FOLDER/parts: a second call
goes on where the first one stopped, and the folder may be removed at the end.

**steps.npz** holds single steps of many configurations, computed by JAX in double precision without the C++ library.
The compiler was kept from fusing multiplications and additions, so that each is rounded by itself. Each configuration
was started on a batch and followed a stream of some hundred samples; S scattered steps of it are recorded, and all
arrays of them are stacked:

    <configuration>|x, |y, |elapsed             the samples: S×D, S or S×P, S
    <configuration>|before|<path>               leaves of the state before each step
    <configuration>|after|<path>                and after it
    <configuration>|forecast|<path>             leaves of `model.forecast` at x before the step, S×P
    <configuration>|probe                       an input, D
    <configuration>|after_forecast|<path>       leaves of `model.forecast` at the probe after the step, S×P
    <configuration>|cond                        S, the larger condition number of Kuu (with its jitter) before and after
                                                the step, the largest of all members of a bank; NaN where there is none
    <configuration>|unsteady                    S×2, by how much the state after the step and the forecast at the probe
                                                differ if all numbers before it but samples and points differ by 1e-15:
                                                the largest difference in any leaf, as a share of its largest entry;
                                                infinite where a truth or a count differs
    <configuration>|start|X, |start|y           the batch it was started on
    <configuration>|start|state|<path>          leaves of the state after it

and for some configurations

    <configuration>|distribution|y              S×P, targets, and for the forecasts at x
    <configuration>|distribution|<method>       what cdf, log_prob, crps, to_normal say of them (S×P), quantile at
                                                QUANTILES and from_normal at SCORES (S×3×P)
    <configuration>|joint|X                     inputs, 3×D
    <configuration>|joint|covariance            `model.joint` there after the last of the steps, P×3×3

<path> is the dotted path of a leaf in the state, with an index for an entry of a tuple: window.X, points.U,
inner.hyperparameters.kernel.first.variance, means.0. The averages of Adam are vectors: the logarithms of the kernel's
parameters in the order of their fields, those of the noises, then the inputs of the newest point. `Kux` and `posterior`
of an AGP are left out: they follow from points, hyperparameters, window and statistics.

The key `index` holds a JSON string: for each configuration the expression that builds its model (in which X and y are
the batch it is started on), the numbers of inputs, outputs (null for a plain number) and steps.

**runs.json** holds scores of whole prequential runs, with the C++ library where it suits (`scores`) and with JAX alone
(`scores_jax`, where the library suits): by how much they differ is what rounding does in the long run.
"""

import argparse
import hashlib
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

QUANTILES = (0.025, 0.5, 0.9)
SCORES = (-6.0, -0.7, 1.5)


# ---- configurations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Configuration:
    """A model, the stream that it follows, and how many steps of it are recorded."""

    name: str
    model: str
    inputs: int = 2
    outputs: int | None = None
    steps: int = 10
    kind: str = ""  # what is special about the stream: see `stream`
    start: int = 20  # rows of the batch it is started on
    further: bool = False  # record distributions and a joint covariance too
    compiled: bool = True  # or computed operation by operation


NAMES = {
    "agp": "AGP FastAGP",
    "defaults": "recommended",
    "experiments.carried": "CarriedAGP",
    "kernels": "SE Constant Linear Matern12 Matern32 Matern52 Periodic RationalQuadratic",
    "monitor": "Monitor",
    "rivals": "AGPVSI DTC FITC KRLST OSGP SVGP WISKI WVSGP ExactWindow LastKMean Persistence",
    "wrappers": "Bank Calibrated CarryForward Standardize Watched Within",
}
SMALL = "inducing=4, window=12, noise=0.1, warmup_iterations=5"
PLACED = "inducing=4, window=12, noise=0.1"
DENSE = "window=12, noise=0.1, warmup_iterations=5"
CORNERS = "[[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]"
NATURAL = "natural=1.0, rate=0.2, prior=3.0"
FAST = f"FastAGP(kernel=SE(0.5), {SMALL})"
PAPER = (
    "inducing=10, window=100, attenuation=0.1, inducing_inputs=np.linspace(0, 1, 10)[:, None], jitter=0.0, "
    "absolute_jitter=1e-3, relevance='cholesky', admission='published'"
)

KERNELS = {
    "SE ARD": "SE([0.5, 0.8], 0.7)",
    "Matern12": "Matern12(0.5)",
    "Matern12 ARD": "Matern12([0.5, 0.8])",
    "Matern32": "Matern32(0.5)",
    "Matern32 ARD": "Matern32([0.5, 0.8])",
    "Matern52": "Matern52(0.5)",
    "Matern52 ARD": "Matern52([0.5, 0.8])",
    "RQ": "RationalQuadratic(0.5, 0.7, 1.2)",
    "RQ ARD": "RationalQuadratic([0.5, 0.8], 0.7, 1.2)",
    "Periodic": "Periodic(1.5, 0.8, 0.7)",
    "Periodic ARD": "Periodic([1.5, 2.0], [0.8, 1.1], 0.7)",
    "Linear+Constant": "Linear(0.7) + Constant(0.5)",
    "Linear ARD+Constant": "Linear([0.7, 0.4]) + Constant(0.5)",
    "Linear+SE": "Linear(0.3) + SE(0.5)",
    "Linear+SE ARD": "Linear([0.3, 0.2]) + SE([0.5, 0.8])",
    "SE*Periodic": "SE(0.8) * Periodic(1.5, 0.8)",
    "(Linear+SE)*Matern32": "(Linear(0.3) + SE(0.5)) * Matern32(0.7)",
    "(Linear+SE)*Matern32 ARD": "(Linear([0.3, 0.2]) + SE([0.5, 0.8])) * Matern32([0.7, 0.9])",
}
# Where JAX compiles version 0.1, two equal inputs divided by their lengthscales may differ by rounding, and the kink of
# this kernel at distance 0 makes a wrong gradient of that. The C++ library has the right one, and JAX not compiled.
NOT_COMPILED = ("Matern12 ARD",)
BY_NATURAL_STEPS = ("SE ARD", "Matern32", "Periodic ARD", "Linear+SE ARD", "(Linear+SE)*Matern32")
SIZED_KERNELS = {  # for other numbers of inputs than two
    ("SE", 1): "SE(0.5)",
    ("Linear+SE ARD", 1): "Linear([0.3]) + SE([0.5])",
    ("SE", 5): "SE(0.9)",
    ("SE ARD", 5): "SE([0.7, 0.8, 0.9, 1.0, 1.1])",
    ("Linear+SE ARD", 5): "Linear([0.1, 0.2, 0.3, 0.4, 0.5]) + SE([0.7, 0.8, 0.9, 1.0, 1.1])",
}
AGP_OPTIONS = [
    "relevance='cholesky'",
    "relevance='diagonal'",
    "learn_every=3",
    "iterations=3",
    "natural=1.0",
    "natural=1.0, rate=0.2, prior=3.0",
    "natural=1.0, rate=0.2, prior=3.0, learn_every=3, iterations=2",
    "restart=False, iterations=3",
    "threshold=0.3",
    "jitter=1e-4",
    "jitter=0.0, absolute_jitter=1e-3",
    "prior=0.5",
    "outliers=4.0",
    "learn_inducing=True",
    "placement='recent'",
    f"inducing_inputs={CORNERS}",
    "inducing_inputs=[[0.1, 0.2], [0.7, 0.4]]",
    "forgetting=1.0, rate=0.2",
    "attenuation=0.5, warmup_rate=0.2",
]
FAST_OPTIONS = [
    "relevance='cholesky'",
    "relevance='diagonal'",
    "admission='published'",
    "threshold=0.3",
    "outliers=4.0, forgetting=0.9",
    "inducing_inputs=[[0.1, 0.2], [0.7, 0.4]]",
]


def configurations():
    found = [*catalogue(), *agp(), *outputs(), *wrappers(), *rivals()]
    assert len({one.name for one in found}) == len(found), "two configurations have one name"
    return found


def catalogue():
    """Models of `tests/catalogue.py`."""
    wiski = "WISKI(SE(0.5), grid=6, bounds=[[-1.0, 2.0], [-1.0, 2.0]], noise=0.1, warmup_iterations=5)"
    few = {"steps": 10}
    return [
        Configuration("AGP", f"AGP(SE(0.5), {SMALL})", steps=50, further=True),
        Configuration("fast-AGP", f"FastAGP(kernel=Matern32([0.5, 0.8]), {SMALL})", steps=50),
        Configuration("hybrid", f"AGP(SE(0.5), learn_every=3, relevance='cholesky', {SMALL})", steps=30),
        Configuration("AGP with Adam carried along", f"AGP(SE(0.5), restart=False, {SMALL})", steps=20),
        Configuration("AGP with the averages of its warm-up", f"CarriedAGP(kernel=SE(0.5), {PLACED})"),
        Configuration(
            "windowless fast-AGP",
            f"FastAGP(kernel=SE(0.5), {SMALL.replace('12', 'None')}, forgetting=0.9, inducing_inputs={CORNERS})",
            steps=20,
        ),
        Configuration("Standardize", f"Standardize(AGP(SE(1.0), {SMALL}), adapt=0.95)", steps=30, kind="scaled"),
        Configuration("CarryForward", f"CarryForward({FAST})", steps=20, kind="gaps"),
        Configuration("Within", f"Within({FAST})", steps=20, kind="wild"),
        Configuration("Watched", f"Watched({FAST})", steps=20),
        Configuration("Bank", f"Bank({FAST}, forgetting=[0.8, 0.95])", steps=20, further=True),
        Configuration("Calibrated", f"Calibrated({FAST})", steps=20, further=True),
        Configuration("persistence", "Persistence()", **few),
        Configuration("persistence by column", "Persistence(column=1)", **few),
        Configuration("last-k mean", "LastKMean(k=3)", **few),
        Configuration("exact window", f"ExactWindow(SE(0.5), {DENSE})", **few),
        Configuration("w-VSGP", f"WVSGP(SE(0.5), iterations=3, score='predictive', {SMALL})", **few),
        Configuration("AGP-VSI", f"AGPVSI(SE([0.5, 0.8]), iterations=3, renew=3, {SMALL})", **few),
        Configuration("SVGP", f"SVGP(SE(0.5), iterations=2, batch=5, {SMALL})", **few),
        Configuration("FITC", f"FITC(Matern32(0.5), {SMALL})", **few),
        Configuration("DTC", f"DTC(SE(0.5), restart=False, {SMALL})", **few),
        Configuration("OSGP", "OSGP(SE(0.5), inducing=4, noise=0.1, warmup_iterations=5)", **few),
        Configuration("WISKI", wiski, steps=2),
        Configuration("KRLS-T", "KRLST(SE(0.5), dictionary=4, noise=0.1, warmup_iterations=5)", **few),
    ]


def agp():
    """AGP and fast-AGP with all kernels and all options."""
    found = [
        Configuration(f"AGP/kernel={name}", f"AGP({kernel}, {SMALL})", compiled=name not in NOT_COMPILED)
        for name, kernel in KERNELS.items()
    ]
    found += [
        Configuration(f"AGP/kernel={name}/natural", f"AGP({KERNELS[name]}, {NATURAL}, {SMALL})")
        for name in BY_NATURAL_STEPS
    ]
    for (name, D), kernel in SIZED_KERNELS.items():
        found.append(Configuration(f"AGP/kernel={name}/D={D}", f"AGP({kernel}, {SMALL})", inputs=D))
        if name == "Linear+SE ARD":
            model = f"AGP({kernel}, {NATURAL}, {SMALL})"
            found.append(Configuration(f"AGP/kernel={name}/D={D}/natural", model, inputs=D))
    found += [
        Configuration(f"fast-AGP/kernel={name}", f"FastAGP(kernel={KERNELS[name]}, {SMALL})")
        for name in ("Linear+SE", "SE*Periodic")
    ]
    found += [Configuration(f"AGP/{_short(option)}", f"AGP(SE(0.5), {option}, {SMALL})") for option in AGP_OPTIONS]
    found += [
        Configuration(f"fast-AGP/{_short(option)}", f"FastAGP(kernel=SE(0.5), {option}, {SMALL})")
        for option in FAST_OPTIONS
    ]
    windowless = "FastAGP(kernel=Linear(0.3) + SE(0.5), inducing=4, window=None, forgetting=0.9, warmup_iterations=5"
    found += [
        Configuration("windowless fast-AGP/outliers=4.0", f"{windowless}, outliers=4.0)"),
        Configuration("AGP/inducing=1", "AGP(SE(0.5), inducing=1, window=5, noise=0.1, warmup_iterations=5)"),
        Configuration("AGP/warmup_iterations=200", f"AGP(SE(0.5), {PLACED}, warmup_iterations=200)", steps=8),
        Configuration("AGP/cold", f"AGP(SE(0.5), {SMALL})", start=0, steps=20),
        Configuration("fast-AGP/cold", FAST, start=0, steps=20),
        Configuration("AGP/short start", f"AGP(SE(0.5), {SMALL})", start=7),
        Configuration("AGP/gaps", f"AGP(SE(0.5), {SMALL})", kind="gaps"),
        Configuration("AGP/default", "AGP()", inputs=1, kind="time", steps=10, start=100),
        Configuration("fast-AGP/default", "FastAGP()", inputs=1, kind="time", steps=10, start=100),
        Configuration("AGP/paper", f"AGP({PAPER})", inputs=1, kind="time", steps=6, start=100),
        Configuration("fast-AGP/paper", f"FastAGP({PAPER})", inputs=1, kind="time", steps=6, start=100),
    ]
    return found


def _short(option):
    return option.replace(CORNERS, "corners").replace("natural=1.0, rate=0.2, prior=3.0", "natural").replace(", ", ",")


def outputs():
    """Several outputs."""
    many = {
        "AGP": f"AGP(SE(0.5), {SMALL})",
        "AGP/natural": f"AGP(Linear(0.3) + SE(0.5), {NATURAL}, {SMALL})",
        "fast-AGP": FAST,
        "Bank": f"Bank({FAST}, forgetting=[0.8, 0.95])",
        "Standardize": f"Standardize(AGP(SE(1.0), {SMALL}), adapt=0.95)",
        "Calibrated": f"Calibrated({FAST})",
    }
    found = []
    for name, model in many.items():
        kind = "scaled" if name == "Standardize" else ""
        further = name in ("AGP", "Bank", "Calibrated")
        found.append(Configuration(f"{name}/outputs=3", model, outputs=3, steps=10, kind=kind, further=further))
        found.append(Configuration(f"{name}/outputs=24", model, outputs=24, steps=2 if kind else 3, kind=kind))
    outliers = f"AGP(SE(0.5), outliers=4.0, {SMALL.replace('0.1', '[0.1, 0.2, 0.3]')})"
    return [
        *found,
        Configuration("AGP/outputs=1", many["AGP"], outputs=1, steps=6),
        Configuration("AGP/outputs=3/outliers=4.0", outliers, outputs=3, steps=8),
        Configuration("Watched/outputs=3", f"Watched({FAST})", outputs=3, steps=8),
    ]


def wrappers():
    """Wrappers with their options, and some of them inside each other."""
    agp = f"AGP(SE(1.0), {SMALL})"
    member = f"AGP(Linear(0.05) + SE(1.4), {NATURAL}, {SMALL})"
    bank = f"Bank({member}, forgetting=[0.8, 0.9, 0.99])"
    nest = f"Calibrated(Standardize(Within({bank})))"
    following = f"Calibrated(Standardize(Within({bank}), adapt=0.97), symmetric=False)"
    return [
        Configuration("Standardize/adapt=False", f"Standardize({agp})", kind="scaled", further=True),
        Configuration("Standardize/adapt=True", f"Standardize({agp}, adapt=True)", kind="scaled"),
        Configuration("Standardize/adapt=1.0", f"Standardize({agp}, adapt=1.0)", kind="scaled"),
        Configuration("Standardize/fast-AGP", f"Standardize({FAST}, adapt=0.95)", kind="scaled", steps=16),
        Configuration("Standardize/cold", f"Standardize({agp}, adapt=0.95)", kind="scaled", start=0, steps=16),
        Configuration("Standardize/CarryForward", f"Standardize(CarryForward({agp}), adapt=0.95)", kind="scaled gaps"),
        Configuration("CarryForward/Standardize", f"CarryForward(Standardize({agp}, adapt=0.95))", kind="scaled gaps"),
        Configuration("CarryForward/cold", f"CarryForward({FAST})", kind="gaps", start=0),
        Configuration("Bank/CarryForward", f"Bank(CarryForward({FAST}), forgetting=[0.8, 0.95])", kind="gaps", steps=8),
        Configuration("Within/margin=0.0", f"Within({agp}, margin=0.0)", kind="wild"),
        Configuration("Within/cold", f"Within({FAST})", kind="wild", start=0),
        Configuration("Bank/AGP", bank, further=True),
        Configuration("Bank/default", f"Bank({FAST})", steps=4),
        Configuration("Bank/memory and prior", f"Bank({FAST}, memory=0.9, prior=[0.7, 0.3], forgetting=[0.8, 0.99])"),
        Configuration("Bank/two settings", f"Bank({agp}, forgetting=[0.8, 0.95], rate=[0.02, 0.2])", steps=8),
        Configuration(
            "Bank/Standardize",
            f"Bank(Standardize({agp}, adapt=0.95), forgetting=[0.8, 0.95])",
            kind="scaled",
            steps=8,
        ),
        Configuration("Calibrated/symmetric=False", f"Calibrated({FAST}, symmetric=False)", steps=20, further=True),
        Configuration(
            "Calibrated/options",
            f"Calibrated({FAST}, levels=(0.6, 0.9), rate=0.05, gains=[0.0, 0.05], prior=[0.7, 0.3], memory=0.9)",
            further=True,
        ),
        Configuration("Calibrated/Bank", f"Calibrated({bank})", further=True),
        Configuration(
            "Watched/options",
            f"Watched({FAST}, Monitor(forgetting=0.9, slack=0.0, threshold=1.0, lags=3))",
            steps=20,
        ),
        Configuration("nest", nest, kind="scaled wild", steps=12, further=True),
        Configuration("nest/adapt", following, kind="scaled wild", steps=12, further=True),
        Configuration("nest/outputs=3", nest, kind="scaled wild", outputs=3, steps=4),
        Configuration("recommended/D=1", "recommended(X, y)", inputs=1, kind="scaled time", start=60, steps=3),
        Configuration("recommended/D=3", "recommended(X, y)", inputs=3, kind="scaled wild", start=60, steps=3),
    ]


def rivals():
    """Rivals with several outputs, and in units that change."""
    models = {
        "AGP-VSI": f"AGPVSI(SE([0.5, 0.8]), iterations=3, renew=3, {SMALL})",
        "SVGP": f"SVGP(SE(0.5), iterations=2, batch=5, {SMALL})",
        "OSGP": "OSGP(SE(0.5), inducing=4, noise=0.1, warmup_iterations=5)",
        "KRLS-T": "KRLST(SE(0.5), dictionary=4, noise=0.1, warmup_iterations=5)",
        "last-k mean": "LastKMean(k=3)",
    }
    several = ("AGP-VSI", "OSGP", "KRLS-T", "last-k mean")
    rescaled = ("AGP-VSI", "SVGP", "OSGP", "KRLS-T")
    found = [Configuration(f"{name}/outputs=3", models[name], outputs=3, steps=4) for name in several]
    return found + [
        Configuration(f"Standardize/{name}", f"Standardize({models[name]}, adapt=0.95)", kind="scaled", steps=5)
        for name in rescaled
    ]


def names():
    """What an expression may name."""
    return {"np": np} | {name: getattr(room(module), name) for module, held in NAMES.items() for name in held.split()}


def room(name):
    """A module of version 0.1, which later versions need not have."""
    return import_module(f"driftgp.{name}")


# ---- streams ---------------------------------------------------------------------------------------------------------


def stream(configuration):
    """X, y and elapsed of some hundred samples: a function that turns half-way, with gaps, outliers and odd times.

    All numbers are multiples of 2⁻¹²: they take less room in a compressed file. Words in `kind` add to it:

        time     inputs that march on
        scaled   other units, which change
        wild     inputs far out, alone or two running
        gaps     inputs that are NaN
    """
    D, P, kind = configuration.inputs, configuration.outputs or 1, configuration.kind.split()
    rng = np.random.default_rng(seed_of(configuration.name))
    N = configuration.start + 300
    t = np.arange(N) / N
    X = rng.uniform(size=(N, D)) + 0.3 * np.sin(2 * np.pi * t)[:, None]
    if "time" in kind:
        X = 5.0 * t[:, None] + 0.01 * X
    slopes = rng.normal(size=(D, P)) / np.sqrt(D)
    turn = np.where(np.arange(N) < N // 2, 3.0, 5.0)[:, None]
    y = np.sin(turn * X @ slopes + np.arange(P)) + t[:, None] * X[:, :1] + 0.15 * rng.normal(size=(N, P))
    y[rng.choice(N, 6, replace=False)] += 3.0
    X, y = np.round(X * 4096) / 4096, np.round(y * 4096) / 4096
    elapsed = rng.choice([1.0, 0.0, 0.5, 2.0, 3.75], size=N, p=[0.8, 0.05, 0.05, 0.05, 0.05])
    y[rng.uniform(size=N) < 0.06] = np.nan
    if P > 1:
        y[rng.uniform(size=(N, P)) < 0.06 / P] = np.nan
    _spoil(rng, kind, X, y)
    return X, y[:, 0] if configuration.outputs is None else y, elapsed


def _spoil(rng, kind, X, y):
    N, D = X.shape
    if "scaled" in kind:
        y[N // 3 :] = 4.0 * y[N // 3 :] - 2.0
        X[2 * N // 3 :] = 2.0 * X[2 * N // 3 :] + 0.5
        X *= 64.0
        X += 1024.0 * np.arange(1, D + 1)
        y *= 32.0
        y += 4096.0
    if "wild" in kind:
        alone, running, far = rng.choice(N, 6, replace=False), rng.choice(N - 1, 2, replace=False), 2.0 * np.ptp(X, 0)
        X[alone] += far * rng.choice([-1.0, 0.0, 1.0], size=(6, D))
        for row in (*running, *(running + 1)):
            X[row, 0] += far[0]
    if "gaps" in kind:
        X[rng.uniform(size=X.shape) < 0.06] = np.nan


def seed_of(name):
    """A seed of its own for every name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")


# ---- steps -----------------------------------------------------------------------------------------------------------


def leaves(tree):
    """Arrays of a pytree by their dotted paths; without what follows from the rest of an AGP."""
    import jax

    AGPState = room("agp").AGPState
    states = jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, AGPState))
    left_out = {"Kux", "posterior"} if any(isinstance(state, AGPState) for state in states) else set()
    found = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        parts = path_of(path)
        if not left_out.intersection(parts):
            found[".".join(parts)] = np.asarray(leaf)
    return found


def path_of(path):
    return [str(getattr(key, "name", getattr(key, "idx", getattr(key, "key", None)))) for key in path]


def record(configuration):
    """All arrays of one configuration by their names, without its own."""
    import jax

    X, y, elapsed = stream(configuration)
    n, columns = configuration.start, configuration.outputs or 1
    model = eval(configuration.model, names() | {"X": X[:n], "y": y[:n]})
    probe = np.nanmean(X[n:], 0).round(3)
    with jax.disable_jit(not configuration.compiled):
        start = jax.jit(lambda model, X, y: model.init(X, y))(model, X[:n], y[:n])

    def step(model, state, x, y, elapsed, probe):
        after = model.learn(state, x, y, elapsed)
        return model.forecast(state, x[None]), after, model.forecast(after, probe[None])

    rows = [(X[row], y[row].reshape(columns), elapsed[row], probe) for row in range(n, len(X))]
    quick = jax.jit(step)
    states = [jax.device_get(start)]
    for row in rows:
        states.append(jax.device_get(quick(model, states[-1], *row)[1]))

    chosen = choose(configuration, states, X[n:], y[n:], elapsed[n:])
    exact = quick if configuration.compiled else uncompiled(step)
    before = [states[i] for i in chosen]
    forecasts, after, probed = zip(*(jax.device_get(exact(model, states[i], *rows[i])) for i in chosen), strict=True)
    forecast = stacked(forecasts, np.concatenate)  # S×P
    arrays = {
        "x": X[n:][chosen],
        "y": y[n:][chosen],
        "elapsed": elapsed[n:][chosen],
        "probe": probe,
        "cond": np.maximum(*([condition(model, state) for state in some] for some in (before, after))),
        "unsteady": np.array([unsteady(exact, model, states[i], rows[i]) for i in chosen], np.float32),
        **named("before", stacked(before)),
        **named("after", stacked(after)),
        **named("forecast", forecast),
        **named("after_forecast", stacked(probed, np.concatenate)),
        "start|X": X[:n],
        "start|y": y[:n],
        **named("start|state", states[0]),
    }
    if configuration.further:
        arrays |= distribution(forecast, arrays["y"].reshape(len(chosen), columns))
        arrays |= joint(model, after[-1], X[n : n + 3])
    jax.clear_caches()
    return arrays


def uncompiled(function):
    import jax

    def call(*arguments):
        with jax.disable_jit():
            return function(*jax.tree.map(jax.numpy.asarray, arguments))

    return call


def stacked(trees, how=np.stack):
    import jax

    return jax.tree.map(lambda *arrays: how(arrays), *trees)


def named(group, tree):
    return {f"{group}|{path}": leaf for path, leaf in leaves(tree).items()}


def choose(configuration, states, X, y, elapsed):
    """Steps to record: up to three of the first, some of each kind that is rare, and others at random."""
    rng = np.random.default_rng(seed_of(configuration.name) + 1)
    before = leaves(stacked(states))
    counters = ("renewals", "alarms", "limited", "skipped", "repaired")
    rare = [
        np.isnan(y).reshape(len(y), -1).any(1),
        elapsed == 0.0,
        (elapsed != 0.0) & (elapsed != 1.0),
        np.isnan(X).any(1),
        *(changes(leaf) for path, leaf in before.items() if path.endswith(counters)),
        *(changes(leaf) for path, leaf in before.items() if path.endswith("points.U") and "fast" in configuration.name),
    ]
    chosen = [0, 1, 2][: configuration.steps // 4]
    kinds = [list(rng.permutation(np.flatnonzero(mask))) for mask in rare]
    while any(kinds) and len(chosen) < 0.55 * configuration.steps:
        kinds = [kind for kind in kinds if kind]
        for kind in kinds:
            chosen.append(int(kind.pop()))
    chosen = list(dict.fromkeys([*chosen, *(int(i) for i in rng.permutation(len(X)))]))
    return sorted(chosen[: configuration.steps])


def changes(leaf):
    return np.any((leaf[1:] != leaf[:-1]).reshape(len(leaf) - 1, -1), 1)


def condition(model, state):
    """Condition number of Kuu with its jitter, the largest of all members of a bank; NaN without inducing points."""
    import jax

    if isinstance(model, room("wrappers").Bank):
        members = ((model.member(k), jax.tree.map(lambda leaf, k=k: leaf[k], state.inner)) for k in range(model.size))
        return max(condition(*member) for member in members)
    if hasattr(state, "inner"):
        return condition(model.model, state.inner)
    if isinstance(model, room("rivals").OSGP):
        return float(np.linalg.cond(state.Kuu))
    if getattr(state, "points", None) is None:
        return np.nan
    model = getattr(model, "model", model)
    relative = room("settings").default_jitter(np.float64) if model.jitter is None else model.jitter
    jitters = np.float64(relative), np.float64(getattr(model, "absolute_jitter", 0.0))
    gram = jax.jit(room("inducing").gram)(state.hyperparameters.kernel, state.points, *jitters)
    return float(np.linalg.cond(gram))


def unsteady(step, model, state, row):
    """By how much state and forecast after a step differ at most if some numbers before it differ by rounding."""
    import jax

    rng = np.random.default_rng(0)
    placed = {"window", "points", "recent", "carried", "range", "grid", "centre", "scale"}

    def disturbed(path, leaf):
        names = path_of(path)
        if leaf.dtype.kind != "f" or placed.intersection(names) or names[-2:] == ["free", "0"]:
            return leaf
        return leaf * (1.0 + 1e-15 * rng.uniform(-1.0, 1.0, leaf.shape))

    _, *exact = step(model, state, *row)
    found = []
    for _ in range(3):
        _, *other = step(model, jax.tree_util.tree_map_with_path(disturbed, state), *row)
        found.append([difference(leaves(one), leaves(two)) for one, two in zip(exact, other, strict=True)])
    return np.max(found, 0)


def difference(one, two):
    """The largest difference of two sets of arrays, in each as a share of its largest entry."""
    largest = 0.0
    for path, leaf in one.items():
        if leaf.dtype.kind != "f":
            largest = largest if np.array_equal(leaf, two[path]) else np.inf
        elif leaf.size:
            size = np.max(np.abs(leaf))
            largest = max(largest, np.max(np.abs(leaf - two[path])) / (size if size > 0.0 else 1.0))
    return largest


def distribution(forecast, y):
    """What the methods of a prediction say, S×P or S×3×P."""
    y = np.where(np.isnan(y), 0.25, y)
    said = {method: getattr(forecast, method)(y) for method in ("cdf", "log_prob", "crps", "to_normal")}
    said["quantile"] = np.stack([forecast.quantile(q) for q in QUANTILES], 1)
    said["from_normal"] = np.stack([forecast.from_normal(z) for z in SCORES], 1)
    return {f"distribution|{name}": np.asarray(value) for name, value in ({"y": y} | said).items()}


def joint(model, state, X):
    """Joint covariance of new targets, where the model has one."""
    import jax

    try:
        covariance = jax.jit(lambda model, state, X: model.joint(state, X))(model, state, X)
    except ValueError:
        return {}
    return {"joint|X": X, "joint|covariance": np.asarray(covariance)}


def write_steps(folder):
    import jax

    jax.config.update("jax_enable_x64", True)
    parts = folder / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    index, arrays, every = {}, {}, configurations()
    for number, one in enumerate(every):
        digest = hashlib.sha256(repr(one).encode()).hexdigest()[:16]
        part = parts / f"{digest}.npz"
        if not part.exists():
            began = time.monotonic()
            written(part, record(one))
            say(f"{number + 1} of {len(every)}: {one.name}, {time.monotonic() - began:.1f} s")
        with np.load(part) as held:
            arrays |= {f"{one.name}|{key}": held[key] for key in held.files}
        settings = asdict(one)
        index[one.name] = {key: settings[key] for key in ("model", "inputs", "outputs", "steps")}
    text = json.dumps(index, ensure_ascii=False)
    written(folder / "steps.npz", arrays | {"index": np.array(text)})


def written(path, arrays):
    """Write an npz file: numpy's own writer needs more room for each array, and writes the hour into the file."""
    unfinished = path.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for key, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array))
            entry = zipfile.ZipInfo(f"{key}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, buffer.getvalue(), compresslevel=9)
    unfinished.replace(path)


# ---- runs ------------------------------------------------------------------------------------------------------------

STREAMS = {
    **{f"toy {seed}": f"driftgp.data.toy_stream(seed={seed}), the first 100 rows for warm-up" for seed in range(5)},
    "CT load": (
        "driftgp.data.read_isone(zones=['CT'])['CT'].values.ravel() / 1000, the first 3024 hours: 3000 rows with the "
        "24 values before each (the oldest first) as inputs, the first 500 rows for warm-up"
    ),
}
STOCHASTIC = (
    "inducing=10, window=100, inducing_inputs=np.linspace(0, 1, 10)[:, None], jitter=0.0, absolute_jitter=1e-3, "
    "iterations=50, score='predictive', restart=False"
)
SPARSE = "window=100, attenuation=0.1, inducing=10, inducing_inputs=np.linspace(0, 1, 10)[:, None]"
POINTS = "inducing=10, inducing_inputs=np.linspace(0, 1, 10)[:, None]"
RUNS = {
    "AGP()": range(5),
    "FastAGP()": range(5),
    "AGP(learn_every=10)": range(5),
    "AGP(relevance='cholesky')": range(5),
    "AGP(natural=1.0, rate=0.2, prior=3.0)": range(5),
    "AGP(restart=False)": range(5),
    "AGP(outliers=4.0)": range(5),
    "recommended(X, y)": range(3),
    # the methods of the published tables, with their settings
    f"AGP({PAPER})": range(1),
    f"FastAGP({PAPER})": range(1),
    f"AGP(learn_every=10, {PAPER})": range(1),
    f"CarriedAGP({PAPER})": range(1),
    "Persistence()": range(1),
    "LastKMean()": range(1),
    f"WVSGP(rate=0.005, {STOCHASTIC})": range(1),
    f"AGPVSI(rate=0.05, attenuation=0.1, {STOCHASTIC})": range(1),
    f"OSGP({POINTS})": range(1),
    "WISKI(grid=80, bounds=(-5.6, 5.6), rate=1e-4)": range(1),
    "WISKI(grid=80, bounds=(-5.6, 5.6))": range(1),
    "ExactWindow(window=100, attenuation=0.1)": range(1),
    "KRLST(dictionary=10, forgetting=0.98)": range(1),
    f"SVGP(window=100, {POINTS})": range(1),
    f"FITC({SPARSE})": range(1),
    f"DTC({SPARSE})": range(1),
}


def samples(name):
    """X, y and the number of rows for warm-up."""

    if name.startswith("toy"):
        toy = room("data").toy_stream(seed=int(name.split()[1]))
        return toy.X, toy.y, toy.warmup
    load = room("data").read_isone(zones=["CT"])["CT"].values.ravel()[:3024] / 1000
    windows = np.lib.stride_tricks.sliding_window_view(load, 25)
    return windows[:, :24], windows[:, 24], 500


def scores(expression, stream_name):
    """Scores of a prequential run after the warm-up."""

    evaluate = room("evaluate")
    X, y, n = samples(stream_name)
    model = eval(expression, names() | {"X": X[:n], "y": y[:n]})
    run = evaluate.prequential(model, model.init(X[:n], y[:n]), X[n:], y[n:])
    found = evaluate.scores(run.prediction, y[n:], level=0.95)
    return {name: found[name] for name in ("mse", "nlpd", "coverage", "crps")}


def runs():
    return [*((expression, f"toy {seed}") for expression, seeds in RUNS.items() for seed in seeds), LOAD]


LOAD = ("recommended(X, y)", "CT load")


def write_scores(folder, key):
    """Scores of all runs, into a part of their own; by JAX alone for those that the C++ library suits otherwise."""
    part = folder / "parts" / f"{key}.json"
    part.parent.mkdir(parents=True, exist_ok=True)
    held = json.loads(part.read_text()) if part.exists() else {}
    for expression, name in runs():
        by_library = expression.startswith(("AGP(", "FastAGP(", "recommended(")) and "restart=False" not in expression
        if f"{expression} | {name}" in held or (key == "scores_jax" and not by_library):
            continue
        began = time.monotonic()
        held[f"{expression} | {name}"] = scores(expression, name)
        part.write_text(json.dumps(held, indent=1))
        say(f"{expression} on {name}, {time.monotonic() - began:.1f} s")


def write_runs(folder):
    parts = {key: json.loads((folder / "parts" / f"{key}.json").read_text()) for key in ("scores", "scores_jax")}
    entries = []
    for expression, name in runs():
        found = {key: part.get(f"{expression} | {name}") for key, part in parts.items()}
        held = {key: value for key, value in found.items() if value is not None}
        entries.append({"model": expression, "stream": name, **held})
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    (folder / "runs.json").write_text(f'{{"streams": {json.dumps(STREAMS, indent=1)},\n"runs": [\n{lines}\n]}}\n')


# ---- all of it -------------------------------------------------------------------------------------------------------


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description="Write steps.npz and runs.json.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=["steps", "scores", "scores_jax"], help="one part alone, in this process")
    options = parser.parse_args()
    if options.part == "steps":
        write_steps(options.folder)
    elif options.part:
        write_scores(options.folder, options.part)
    else:
        for part in ("steps", "scores", "scores_jax"):  # whether the C++ library is used is settled for a whole process
            environment = os.environ | {"DRIFTGP_NATIVE": "1" if part == "scores" else "0", "JAX_PLATFORMS": "cpu"}
            environment |= {"XLA_FLAGS": "--xla_cpu_max_isa=AVX"} if part == "steps" else {}
            command = [sys.executable, __file__, str(options.folder), "--part", part]
            subprocess.run(command, env=environment, check=True)
        write_runs(options.folder)


if __name__ == "__main__":
    main()
