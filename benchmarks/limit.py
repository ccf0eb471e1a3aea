"""The limit: the arithmetic that a step cannot avoid, in BLAS calls from NumPy and in C++."""

import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from driftgp.gp.agp import AGP

SOURCE = Path(__file__).with_name("limit.cpp")
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-std=c++17")
HEADER = 12  # numbers in a problem before its arrays
HEAD = 8  # numbers in an answer before the gradient of the newest point

Kind = str
KINDS: dict[str, Kind] = {"limit": "bare", "step": "agp", "fast step": "fast"}  # as limit.cpp calls them


# ---- a problem: a window, inducing points, hyperparameters, and samples that arrive ----------------------------------


class Problem(NamedTuple):
    """What the limit starts from."""

    M: int
    T: int
    D: int
    N: int
    numbers: np.ndarray  # all of it, as limit.cpp reads it

    @classmethod
    def of(cls, model: AGP, state: Any, X: np.ndarray, y: np.ndarray) -> "Problem":
        """Continue where a model stands, with a window that is full and one lengthscale."""
        memory = state.window
        (M, D), T, N = state.U.shape, len(state.w), len(y)
        if np.any(state.w == 0.0) or memory.cursor != 0:
            raise ValueError("state must be one just warmed up on a full window")
        settings = [model.forgetting, model.rate, model.threshold, model.jitter]
        head = np.array([M, T, D, N, state.points, *settings, *state.theta, *state.noise], float)
        parts = [head, memory.X, memory.y, state.w, state.U, X, y]
        return cls(M, T, D, N, np.concatenate([np.ravel(np.asarray(part, float)) for part in parts]))

    def arrays(self) -> dict[str, Any]:
        """The same by name."""
        M, T, D = self.M, self.T, self.D
        m = int(self.numbers[4])
        names = ("X", "y", "w", "U")
        pieces = np.split(self.numbers[HEADER:], np.cumsum([T * D, T, T, M * D]))
        lengthscale, variance, noise = self.numbers[9:HEADER]
        found = dict(zip(names, pieces[:4], strict=True))
        return found | {
            "X": found["X"].reshape(T, D),
            "U": found["U"].reshape(M, D)[:m],
            "lengthscale": lengthscale,
            "variance": variance,
            "noise": noise,
            "jitter": self.numbers[8],
        }


# ---- C++ -------------------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """What limit.cpp computed."""

    microseconds: np.ndarray  # per step, of each repeat
    gradient: np.ndarray  # in log lengthscale, log variance, log noise, newest point
    parameters: np.ndarray  # lengthscale, variance, noise
    points: int
    exchanges: int  # of fast: steps that would have exchanged a point
    mean: np.ndarray
    variance: np.ndarray


def compiler() -> str | None:
    """A C++ compiler, or None."""
    return next((found for name in ("c++", "g++", "clang++") if (found := shutil.which(name))), None)


def compile_program(folder: Path, flags: tuple[str, ...] = FLAGS, source: Path = SOURCE) -> Path:
    """Compile limit.cpp, or another source, for this machine, unless that was done before."""
    program = folder / source.stem
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program
    found = compiler()
    if found is None:
        raise ValueError("no C++ compiler: put c++, g++ or clang++ on the PATH")
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([found, *flags, "-o", str(program), str(source), "-ldl"], check=True)
    return program


@cache
def openblas() -> tuple[str, ...]:
    """The BLAS that came with SciPy and the prefix of its names, or nothing."""
    folder = Path(sysconfig.get_path("purelib")) / "scipy.libs"
    found = sorted(folder.glob("libscipy_openblas-*.so"))
    return (str(found[0]), "scipy_") if found else ()


def run(program: Path, kind: Kind, problem: Problem, repeats: int, by_blas: bool) -> Answer:
    """Follow the problem's samples this number of times."""
    out = _call(program, kind, problem, repeats, by_blas)
    seconds, head, rest = np.split(out, [repeats, repeats + HEAD])
    point, mean, variance = np.split(rest, np.cumsum([problem.D, problem.N]))
    gradient = np.concatenate([head[:3], point])
    return Answer(1e6 * seconds, gradient, head[3:6], int(head[6]), int(head[7]), mean, variance)


def _call(program: Path, kind: Kind, problem: Problem, repeats: int, by_blas: bool) -> np.ndarray:
    command = [str(program), kind, str(repeats), *(openblas() if by_blas else ())]
    done = subprocess.run(command, input=problem.numbers.tobytes(), stdout=subprocess.PIPE, check=True)
    return np.frombuffer(done.stdout)


# ---- NumPy and BLAS --------------------------------------------------------------------------------------------------


class Straight:
    """The bare arithmetic of an AGP step in NumPy and BLAS calls, on arrays that are there already."""

    def __init__(self, problem: Problem) -> None:
        given = problem.arrays()
        self.X, self.y, self.w, self.U = (given[name] for name in ("X", "y", "w", "U"))
        self.M, self.T = len(self.U), problem.T
        self.lengthscale, self.variance, self.noise = (given[name] for name in ("lengthscale", "variance", "noise"))
        self.jitter = given["jitter"]
        self.xx = np.einsum("td,td->t", self.X, self.X)
        self.root_w = np.sqrt(self.w)[:, None]
        self.wy = self.w * self.y
        shape, square = (self.T, self.M), (self.M, self.M)
        self.r2, self.Kxu, self.part, self.G = (np.empty(shape) for _ in range(4))
        self.r2_uu, self.Kuu = np.empty(square), np.empty(square)
        self.identity = np.eye(self.M)

    def gradient(self) -> np.ndarray:
        """∂F in log lengthscale, log variance, log noise and the newest point."""
        self._grams()
        np.multiply(self.Kxu, self.root_w, out=self.part)
        Phi = blas.dsyrk(1.0, self.part.T, lower=1)  # M×M, of its column-major transpose
        Phi = Phi + np.tril(Phi, -1).T
        b = self.Kxu.T @ self.wy
        n, yy = self.w.sum(), self.wy @ self.y
        return self._differentiate(Phi, b, n, yy)

    def _grams(self) -> None:
        f = -0.5 / self.lengthscale**2
        uu = np.einsum("md,md->m", self.U, self.U)
        for X, xx, r2, K in (
            (self.X, self.xx, self.r2, self.Kxu),
            (self.U, uu, self.r2_uu, self.Kuu),
        ):
            np.matmul(X, self.U.T, out=r2)
            np.multiply(r2, -2.0, out=r2)
            np.add(r2, xx[:, None], out=r2)
            np.add(r2, uu, out=r2)
            np.maximum(r2, 0.0, out=r2)
            np.multiply(r2, f, out=K)
            np.exp(K, out=K)
            np.multiply(K, self.variance, out=K)
            np.multiply(r2, -2.0 * f, out=r2)
        np.fill_diagonal(self.r2_uu, 0.0)
        np.fill_diagonal(self.Kuu, self.variance * (1.0 + self.jitter))

    def _differentiate(self, Phi: np.ndarray, b: np.ndarray, n: float, yy: float) -> np.ndarray:
        beta, M = 1.0 / self.noise, self.M
        L, _ = lapack.dpotrf(self.Kuu, lower=1, clean=1)
        inverse_L, _ = lapack.dtrtri(L, lower=1)
        S = blas.dtrmm(1.0, inverse_L, blas.dtrmm(1.0, inverse_L, Phi, lower=1), lower=1, side=1, trans_a=1)
        white_b = inverse_L @ b
        L_B, _ = lapack.dpotrf(beta * S + self.identity, lower=1, clean=1)
        lower, _ = lapack.dpotri(L_B, lower=1)
        inverse_B = np.tril(lower) + np.tril(lower, -1).T
        a = inverse_B @ white_b
        left = self.identity - inverse_B
        common = left - beta**2 * np.outer(a, a)
        dPhi = self._outside(inverse_L, 0.5 * beta * common)
        dKuu = self._outside(inverse_L, 0.5 * (common - beta * S))
        db = beta**2 * (inverse_L.T @ a)
        kappa = self.variance * n
        d_noise = -0.5 * beta * (n / beta - yy - kappa + np.vdot(left, S) + beta * (a @ white_b + a @ a))
        # ∂F/∂Kxu = W (2 Kxu ∂F/∂Φ + y ∂F/∂bᵀ)
        G = np.matmul(self.Kxu, dPhi, out=self.G)
        G *= 2.0 * self.w[:, None]
        G += np.multiply.outer(self.wy, db)
        G *= self.Kxu
        dKuu *= self.Kuu
        d_variance = G.sum() + dKuu.sum() - 0.5 * beta * kappa
        d_lengthscale = np.vdot(G, self.r2) + np.vdot(dKuu, self.r2_uu)
        newest, u = M - 1, self.U[-1]
        d_point = (G[:, newest] @ (self.X - u) + 2.0 * dKuu[newest] @ (self.U - u)) / self.lengthscale**2
        return np.concatenate([[d_lengthscale, d_variance, d_noise], d_point])

    @staticmethod
    def _outside(inverse_L: np.ndarray, A: np.ndarray) -> np.ndarray:
        """L⁻ᵀ A L⁻¹."""
        return blas.dtrmm(1.0, inverse_L, blas.dtrmm(1.0, inverse_L, A, lower=1, trans_a=1), lower=1, side=1)
