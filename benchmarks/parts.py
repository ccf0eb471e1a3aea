"""Where the time of a step goes: the library's own functions, each compiled by itself and run in a loop."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks import limit, ours, streams
from benchmarks.process import CACHE, Row
from benchmarks.sizes import Size, steps
from benchmarks.timing import Run, in_turn, timed
from driftgp import bound, inducing
from driftgp.compiling import compile_outer
from driftgp.model import checked_inputs, checked_rows
from driftgp.packing import pack
from driftgp.settings import default_jitter

CALLS = 500


def parts(size: list[int], rounds: int) -> list[Row]:
    """Of an AGP step in the scan, of the step in C++, and of a sample handed in by itself."""
    chosen = Size(*size)
    stream = streams.stream(chosen, steps(chosen, 0.05))
    model = ours.model("AGP", chosen)
    state = ours.warm(model, stream)
    X, y = ours.after(stream)
    runs: dict[tuple[str, str], Run] = {("whole step", "scan"): ours.in_scan(model, state, stream)}
    runs |= {(name, "scan"): looped(work, state, X[0], len(y)) for name, work in in_step(model).items()}
    runs["whole sample", "calls"] = ours.by_calls(model, state, stream)
    runs |= {(name, "calls"): run for name, run in around_step(model, state, X[0], y[0]).items()}
    measured = in_turn(runs, rounds)
    rows = [
        {"name": name, "how": how, "M": chosen.M, "T": chosen.T, "D": chosen.D, "microseconds": values}
        for (name, how), values in measured.items()
    ]
    return rows + _in_cpp(limit.Problem.of(model, state, X, y), chosen, rounds)


def in_step(model: Any) -> dict[str, Callable[[Any, Any, Any], Any]]:
    """Parts of a step as functions of a state, an input, and a number that is 0: each turn depends on it."""
    jitters: tuple[Any, Any] = default_jitter(np.float64), 0.0

    def grams(state: Any, x: Any, zero: Any) -> Any:
        del x
        return inducing.grams(state.hyperparameters.kernel, state.points, state.window.X + zero, *jitters)

    def statistics(state: Any, x: Any, zero: Any) -> Any:
        del x
        memory = state.window
        return bound.statistics(state.Kux + zero, state.hyperparameters.kernel(memory.X), memory.w, memory.y)

    def relevance(state: Any, x: Any, zero: Any) -> Any:
        del x
        diagonal = state.hyperparameters.kernel(state.points.U)
        return inducing.relevance(model.relevance, state.posterior.inverse_L, diagonal, state.statistics.Phi + zero)

    def posterior(state: Any, x: Any, zero: Any) -> Any:
        del x
        h = state.hyperparameters
        root, repairs = bound.inverse_root(inducing.gram(h.kernel, state.points, *jitters) + zero)
        return bound.posterior(root, state.statistics, h.noise), repairs

    def gradient(state: Any, x: Any, zero: Any) -> Any:
        def objective(pair: Any) -> Any:
            return model.objective(pair[0], state.points, state.window, newest=pair[1])

        return jax.grad(objective)((state.hyperparameters, x + zero))

    return {
        "predict": lambda state, x, zero: model.predict(state, x[None] + zero),
        "relevance": relevance,
        "one set of Gram matrices": grams,
        "one Φ, with b, n, yy, κ": statistics,
        "factorise twice, posterior": posterior,
        "F and its gradient, Gram matrices and Φ included": gradient,
    }


def looped(work: Callable[[Any, Any, Any], Any], state: Any, x: np.ndarray, turns: int) -> Run:
    """Run a part so many times in one compiled loop, each turn waiting for the one before."""

    def loop(state: Any, x: Any, zero: Any) -> Any:
        def turn(zero: Any, _: None) -> tuple[Any, None]:
            return sum(jnp.sum(leaf) * 1e-300 for leaf in jax.tree.leaves(work(state, x, zero))), None

        return lax.scan(turn, zero, length=turns)[0]

    def run() -> None:
        with jax.enable_x64(True):
            program(state, x, np.zeros(())).block_until_ready()

    program = compile_outer(loop)
    return lambda: timed(turns, run)


def around_step(model: Any, state: Any, x: np.ndarray, y: float) -> dict[str, Run]:
    """What a sample handed in by itself pays beside the step: the call of a compiled function, and the checks."""
    with jax.enable_x64(True):
        settings, packed = pack(model), pack(state)
        idle = compile_outer(lambda _, packed, sample, X: (packed, X[0, :1] + sample[0]), donate_argnums=1)
    sample, row = np.append(x, (y, 1.0)), x[None]

    def call() -> None:
        held = jax.tree.map(jnp.copy, packed)
        for _ in range(CALLS):
            with jax.enable_x64(True):
                held, answer = idle(settings, held, sample, row)
            np.asarray(answer)

    def check() -> None:
        for _ in range(CALLS):
            checked_inputs(state.layout, row)
            checked_rows(state.layout, x, y, 1.0)

    def copied() -> float:
        with jax.enable_x64(True):
            return timed(CALLS, call)

    return {"call of a compiled function that does nothing": copied, "checks": lambda: timed(CALLS, check)}


def _in_cpp(problem: limit.Problem, size: Size, rounds: int) -> list[Row]:
    if limit.compiler() is None:
        return []
    program = limit.compile_program(CACHE)
    rows = []
    for how, by_blas in {"C++ loops": False, "C++ BLAS": True}.items():
        if by_blas and not limit.openblas():
            continue
        found = [limit.parts(program, problem, by_blas) for _ in range(rounds)]
        rows += [
            {"name": name, "how": how, "M": size.M, "T": size.T, "D": size.D, "microseconds": [f[name] for f in found]}
            for name in limit.PARTS
        ]
    return rows
