"""Rows of a forecaster by the compiled library: `core.Core._row` in C++ (engine/cpp/forecast.hpp)."""

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from driftgp.engine import compiled

if TYPE_CHECKING:
    from driftgp.forecasting.core import Core

ROWS = 4800  # leads of rows in one call, so that signals are heard in between


def take(
    core: "Core", values: np.ndarray, slots: np.ndarray, years: np.ndarray, x: np.ndarray, past: np.ndarray, first: int
) -> int:
    """Take rows in from `first` on, until one is left to the caller; return that row, or the number of rows."""
    library = compiled()
    if library is None:
        return first
    arrays, wholes, sizes = _arrays(core), _wholes(core), _sizes(core)
    if (len(sizes), len(wholes), len(arrays), len(arrays[0])) != library.follow_sizes:
        raise ValueError("the compiled library is of another version of driftgp")
    inputs = [
        np.ascontiguousarray(values, np.float64),
        np.ascontiguousarray(slots.T, np.int64),
        *(np.ascontiguousarray(each, np.float64) for each in (years, x, past)),
    ]
    addresses = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
    of_wholes = (ctypes.c_void_p * len(wholes))(*[array.ctypes.data for array in wholes])
    given = sizes.ctypes.data, ctypes.addressof(addresses), ctypes.addressof(of_wholes)
    call = _Series(*given, *(each.ctypes.data for each in inputs), 0, first)
    at_once = max(ROWS // core.settings.horizon, 1)
    while call.first == call.rows < len(values) or call.rows == 0:
        call.rows = min(max(call.rows, first) + at_once, len(values))
        library.follow(call)
    return int(call.first)


class _Series(ctypes.Structure):
    """driftgp_series."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("sizes", "arrays", "wholes")),
        *((name, ctypes.c_void_p) for name in ("values", "slots", "years", "known", "past")),
        ("rows", ctypes.c_int64),
        ("first", ctypes.c_int64),
    )


def _sizes(core: "Core") -> np.ndarray:
    """`Size` of forecast.hpp."""
    lengths, inputs = core.seasons.lengths, core.inputs
    return np.array(
        [
            core.settings.horizon, len(lengths), len(core.names), len(core.mixture.leads), len(core.mixture.starts),
            core.columns.width, core.effects.D, inputs.small, core.waves.w.shape[1] if core.waves else 0,
            core.wide.w.shape[1] if core.wide else 0, core.history.shape[1], core.groups, inputs.short, inputs.long,
            len(core.smoothers.alpha), int(core.yearly), int(core.effective), core.settings.past, len(inputs.lags),
            len(inputs.recent), inputs.weeks, len(inputs.seen), len(inputs.shift), core.profile,
            core.block, inputs.reach,
            len(core.told), core.smoothers.c.shape[1], core.held.size,
            inputs.large, *_of_slots(core.by_slot),
        ],
        np.int64,
    )  # fmt: skip


def _wholes(core: "Core") -> list[np.ndarray]:
    """`Whole` of forecast.hpp."""
    mixture, inputs = core.mixture, core.inputs
    return [
        core.lengths, core.smoothers.offsets, mixture.leads, mixture.starts, mixture.block,
        core.told, core.effects.offsets,
        inputs.lags, inputs.recent, inputs.seen, core.ahead, *_wholes_of_slots(core.by_slot), core.counts,
    ]  # fmt: skip


def _arrays(core: "Core") -> list[np.ndarray]:
    """`Array` of forecast.hpp."""
    s, mixture, reach, effects, inputs = core.smoothers, core.mixture, core.reach, core.effects, core.inputs
    return [
        core.constants(), core.frame, s.alpha, s.alpha_beta, s.kappa, s.rho, s.phi, s.gamma,
        s.begins, s.kept, s.trended,
        s.state, s.c, s.seen, core.open, mixture.S, mixture.n, mixture.w, core.said, core.m, core.s, core.beta,
        core.dependence.z,
        reach.nominal, reach.step, reach.share, reach.v, reach.n, reach.all, reach.count, reach.q,
        reach.issued, reach.d,
        core.dependence.R, core.dependence.origins, core.dependence.size, core.dependence.error, core.dependence.d,
        core.history, core.held, core.ranges, core.sums, inputs.omega, inputs.shift,
        effects.theta, effects.P, effects.before, effects.residual, effects.products,
        *_regression(core.few), *_regression(core.waves), *_regression(core.wide),
        core.own, *_arrays_of_slots(core.by_slot),
    ]  # fmt: skip


def _regression(one: Any) -> list[np.ndarray]:
    return [np.zeros(0)] * 5 if one is None else [one.P, one.factor, one.w, one.phi.entries, one.k.entries]


def _of_slots(model: Any) -> list[int]:
    if model is None:
        return [0] * 7
    return [1, model.D, model.quarters, model.days, model.errors, len(model.lags), model.places]


def _wholes_of_slots(model: Any) -> list[np.ndarray]:
    return [np.zeros(0, np.int64)] * 3 if model is None else [model.lags, model.season, model.seasons]


def _arrays_of_slots(model: Any) -> list[np.ndarray]:
    if model is None:
        return [np.zeros(0)] * 13
    robust = [array for each in (model.usual, model.with_season) for array in (each.P, each.theta, each.size, each.n)]
    return [*robust, *_regression(model.late)]
