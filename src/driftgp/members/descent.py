"""Minimise a function that is evaluated elsewhere, a little at a time: L-BFGS that waits for each value.

The state says where the function is wanted next (`trial`); `tell` takes its value and gradient there. It either accepts
the point and takes a new direction from the last few steps (Nocedal 1980), or shortens the step (Armijo's rule). So a
minimisation can be spread over the rows of a stream, and saved and resumed at any moment.
"""

import numpy as np

from driftgp.contract.records import View, floats, number, whole

PAIRS = 6  # steps that are remembered
_LONGEST = 1.0  # change of any parameter in one step
_DECREASE = 1e-4  # share of the expected decrease that is enough
_SMALLEST = 1e-4  # a decrease below this, as a share of the decrease so far or of 1, ends the descent
_TRIES = 6  # shorter steps in one direction


class DescentState(View):
    """Where a minimisation of K parameters is."""

    theta: np.ndarray = floats("K")  # the best so far
    gradient: np.ndarray = floats("K")
    value: float = number()
    trial: np.ndarray = floats("K")  # where the function is wanted
    direction: np.ndarray = floats("K")
    step: float = number()
    tries: int = whole()
    accepted: int = whole()  # points so far, the first included
    left: int = whole()  # points still wanted
    steps: np.ndarray = floats(PAIRS, "K")  # s = θ' − θ
    turns: np.ndarray = floats(PAIRS, "K")  # g' − g
    pairs: int = whole()  # of these, so far


def begin(state: DescentState, theta: np.ndarray, points: int) -> None:
    """Begin at theta; end after at most this number of points.

    Steps that are remembered from an earlier descent count: the function of a later fit is curved much the same.
    """
    state.theta[...] = state.trial[...] = theta
    state.tries = state.accepted = 0
    state.left, state.step, state.value = points, 0.0, 0.0


def refuses(state: DescentState, value: float) -> bool:
    """Whether the function at `trial` is too high, whatever its gradient there."""
    if state.accepted == 0:
        return False
    slope = float(state.gradient @ state.direction)
    return not value <= state.value + _DECREASE * state.step * slope


def tell(state: DescentState, value: float, gradient: np.ndarray) -> bool:
    """Take the value and gradient at `trial`; return whether another point is needed."""
    sound = bool(np.isfinite(value) and np.isfinite(gradient).all())
    if state.accepted == 0:
        if not sound:
            return False
        gained = np.inf
    else:
        if not sound or refuses(state, value):
            state.tries += 1
            if state.tries > _TRIES:
                return False
            slope = float(state.gradient @ state.direction)
            # the lowest point of the parabola through the known values, within limits
            curve = value - state.value - state.step * slope
            best = -0.5 * slope * state.step**2 / curve if sound and curve > 0.0 else 0.0
            state.step = min(max(best, 0.1 * state.step), 0.5 * state.step)
            state.trial[...] = state.theta + state.step * state.direction
            return True
        gained = state.value - value
        s, turn = state.trial - state.theta, gradient - state.gradient
        if s @ turn > 1e-10 * (turn @ turn):
            place = state.pairs % PAIRS
            state.steps[place], state.turns[place] = s, turn
            state.pairs += 1
    state.theta[...], state.gradient[...], state.value = state.trial, gradient, value
    state.accepted, state.left, state.tries = state.accepted + 1, state.left - 1, 0
    if state.left <= 0 or gained < _SMALLEST * max(1.0, abs(value)):
        return False
    state.direction[...] = _direction(state)
    longest = float(np.max(np.abs(state.direction)))
    if not longest > 0.0:
        return False
    state.step = min(1.0, _LONGEST / longest)
    state.trial[...] = state.theta + state.step * state.direction
    return True


def _direction(state: DescentState) -> np.ndarray:
    """−B⁻¹ g, by the two loops of L-BFGS."""
    d = -state.gradient
    kept = min(state.pairs, PAIRS)
    if kept == 0:
        return d / max(1.0, float(np.sqrt(d @ d)))
    order = [(state.pairs - 1 - i) % PAIRS for i in range(kept)]  # newest first
    shares = {}
    for i in order:
        s, turn = state.steps[i], state.turns[i]
        shares[i] = s @ d / (s @ turn)
        d = d - shares[i] * turn
    s, turn = state.steps[order[0]], state.turns[order[0]]
    d = d * (s @ turn) / (turn @ turn)
    for i in reversed(order):
        s, turn = state.steps[i], state.turns[i]
        d = d + s * (shares[i] - turn @ d / (s @ turn))
    if not state.gradient @ d < 0.0:  # rounding: no way down
        d = -state.gradient / max(1.0, float(np.sqrt(state.gradient @ state.gradient)))
    return d
