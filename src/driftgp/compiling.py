"""How programs are compiled that run once for every sample.

The matrices of a step are small, and most of its time goes where no arithmetic is done: to hand one operation after
another to the processor, to call LAPACK for ten rows. XLA can compile a whole function to one kernel instead, if the
function asks for it and calls no library. `in_one_piece` asks: it traces the function, writes factorisations as loops
and leaves all else as it is. A function with large products, where libraries win, stays as it was.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend import core

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Handing a part of a small step to another thread costs more than computing it; many models take a thread each.
_ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}
# XLA's way to say that a call is to be one kernel, and the library calls it would put inside, which a kernel cannot do.
_ONE_KERNEL = {"xla_cpu_small_call": "true", "inlineable": "false"}
_NO_LIBRARY = {"xla_cpu_experimental_ynn_fusion_type": ""}
# Versions of JAX with which this was tried: the way to ask is XLA's own affair and may change. Others do without.
_TRIED = {(0, 10)}
# Up to so many multiplications a factorisation in the kernel takes less time than one by a library.
_LARGEST_FACTOR = 100_000
# Products of so many are out of place in a kernel, even where they are rare.
_LARGEST_PRODUCT = 2_000_000
# To so many arrays of a stack a kernel writes one after the other.
_LARGEST_STACK = 16
# Up to so many terms a sum as a product costs next to nothing.
_LARGEST_SUM = 200
# No array of a small model has more entries, and none takes more multiplications in a product with itself: larger ones
# gain from the libraries that a kernel must do without. Where a step makes no such product, more entries do no harm.
_LARGEST_ARRAY = 7_500
_LARGEST_SQUARE = 150_000
_LARGEST_LIGHT_ARRAY = 100_000
# The operation of JAX that calls a function of another library, and those that only hold others.
_CALL = "ffi_call"
_INLINED = frozenset({"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call"})
# So few operations are no more than a kernel.
_FEWEST = 3
# To ask so often whether an array is ready takes about 300 µs, the time of a large step.
_TRIES = 2000


def small(state: Any, *, light: bool = False) -> bool:
    """Whether a model with such a state (arrays, or their shapes) is worth a kernel of its own.

    A light one leaves most of its state alone in most of its steps.
    """
    shapes = [leaf.shape for leaf in jax.tree.leaves(state)]
    return (
        jax.__version_info__[:2] in _TRIED
        and jax.default_backend() == "cpu"
        and all(_small(shape, light) for shape in shapes)
    )


def _small(shape: tuple[int, ...], light: bool) -> bool:
    rows, columns = (1, 1, *shape)[-2:]
    if light and rows != columns:  # what is square is factorised at every step
        return math.prod(shape) <= _LARGEST_LIGHT_ARRAY
    return math.prod(shape) <= _LARGEST_ARRAY and rows * columns * min(rows, columns) <= _LARGEST_SQUARE


def compile_outer(function: Callable[..., Any], *, whole: bool = False, **options: Any) -> Any:
    """`jax.jit` for functions that are called from outside.

    In those that are compiled as a whole, `in_one_piece` and `scan` work: see that the models they get are small.
    """
    return jax.jit(function, compiler_options=_ONE_THREAD | (_NO_LIBRARY if whole else {}), **options)


def wait(array: Any) -> np.ndarray:
    """Return an array as NumPy's as soon as it is computed.

    To fall asleep until then and be woken takes longer than a step of a small model; so stay awake for a while.
    """
    for _ in range(_TRIES):
        if array.is_ready():
            break
    return np.asarray(array)


def in_one_piece(
    function: Callable[Arguments, Result], written: int | None = None, *, around_calls: bool = False
) -> Callable[Arguments, Result]:
    """Have a function that is part of a program which is compiled as a whole computed by one kernel, if it suits.

    An argument that the function surely returns changed may be named by its number, `written`: it is changed in place.
    A function that calls other libraries has a kernel before and after each call, if it may be computed `around_calls`:
    fewer operations to hand over at every call from outside, more copies in a loop.

    >>> import numpy as np
    >>> def mean(K, y):
    ...     return jnp.linalg.cholesky(K) @ y
    >>> quick = compile_outer(in_one_piece(mean), whole=True)
    >>> bool(np.allclose(quick(np.eye(3), np.ones(3)), np.ones(3)))
    True
    """

    @wraps(function)
    def whole(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        program, shapes = jax.make_jaxpr(partial(function, **kwargs), return_shape=True)(*args)
        if not suits(program.jaxpr, around_calls=around_calls):
            return function(*args, **kwargs)
        leaves = jax.tree.leaves(args)
        if suits(program.jaxpr):
            changed = [number == written for number, arg in enumerate(args) for _ in jax.tree.leaves(arg)]
            outputs = _in_one_kernel(program, leaves, changed)
        else:
            outputs = _around_calls(program, leaves)
        result: Result = jax.tree.unflatten(jax.tree.structure(shapes), outputs)
        return result

    return whole


def scan(step: Callable[..., Any], shared: Any, carry: Any, rows: Any) -> tuple[Any, Any]:
    """Do what `loops.scan` does, with each step as one kernel, inside which it takes its row."""

    @partial(in_one_piece, written=2)
    def turn(shared: Any, i: Array, carry: Any, rows: Any) -> tuple[Any, Any]:
        carry, output = step(shared, carry, jax.tree.map(lambda array: array[i], rows))
        return (i + 1, carry), output

    (_, carry), outputs = lax.scan(
        lambda carry, _: turn(shared, *carry, rows),
        (jnp.zeros((), jnp.int32), carry),
        length=jax.tree.leaves(rows)[0].shape[0],
    )
    return carry, outputs


class _Equations(NamedTuple):
    """Some of a program's equations, as `core.Jaxpr` has them."""

    invars: list[Any]
    outvars: list[Any]
    eqns: list[Any]
    constvars: tuple[()] = ()


class _Program(NamedTuple):
    """What is used here of `core.ClosedJaxpr`."""

    jaxpr: Any
    consts: Sequence[Any] = ()


def _in_one_kernel(program: core.ClosedJaxpr | _Program, leaves: Sequence[Any], changed: Sequence[bool]) -> list[Any]:
    """Compute in a kernel what there is to compute.

    XLA stops the process at an argument for which it finds no use in the kernel. So whatever has no use, no entries or
    no change stays outside; and since XLA may find that a use is none, a number of each argument comes out again. Large
    ones that are changed in place are used for certain, and to look at them beforehand would take a copy.
    """
    jaxpr: Any = program.jaxpr
    given = dict(zip(jaxpr.invars, leaves, strict=True))
    outputs = [atom for atom in jaxpr.outvars if not _literal(atom)]
    computed = [atom for atom in dict.fromkeys(outputs) if atom not in given and atom.aval.size > 0]
    used = set(computed)
    for equation in reversed(jaxpr.eqns):
        if not used.isdisjoint(equation.outvars):
            used.update(atom for atom in equation.invars if not _literal(atom))
    certain = {
        variable for variable, sure in zip(given, changed, strict=True) if sure and variable.aval.size > _LARGEST_SUM
    }
    needed = {variable: leaf for variable, leaf in given.items() if variable in used and variable.aval.size > 0}
    if not needed:
        return _evaluate(program, leaves)

    @jax.jit
    def kernel(arguments: list[Array]) -> tuple[list[Any], Array]:
        inside = dict(zip(needed, arguments, strict=True))
        outputs = _evaluate(program, [inside.get(variable, _zeros(variable)) for variable in given], computed)
        doubtful = [argument for variable, argument in inside.items() if variable not in certain]
        return outputs, jnp.stack([jnp.ravel(argument)[0].astype(float) for argument in doubtful])

    with set_xla_metadata(**_ONE_KERNEL):
        outputs, witnesses = kernel(list(needed.values()))
    known = given | dict(zip(computed, outputs, strict=True))
    least = min(computed, key=lambda variable: variable.aval.size)
    known[least], _ = lax.optimization_barrier((known[least], witnesses))  # else JAX would drop what nobody asks for
    return [
        jnp.asarray(atom.val, atom.aval.dtype) if _literal(atom) else known.get(atom, _zeros(atom))
        for atom in jaxpr.outvars
    ]


def _around_calls(program: core.ClosedJaxpr, leaves: Sequence[Any]) -> list[Any]:
    """Compute in one kernel what comes before a call, in one what comes between it and the next, and so on."""
    shapes = [jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype) for variable in program.jaxpr.invars]
    inlined = jax.make_jaxpr(lambda *leaves: _evaluate(program, leaves))(*shapes)
    jaxpr: Any = inlined.jaxpr
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, inlined.consts, strict=True))
    values.update(zip(jaxpr.invars, leaves, strict=True))
    stages: dict[Any, int] = {}  # of each variable: how many calls it has to wait for
    pieces: dict[int, list[Any]] = {}
    calls: dict[int, list[Any]] = {}
    for equation in jaxpr.eqns:
        called = equation.primitive.name == _CALL
        stage = max((stages.get(atom, 0) for atom in equation.invars if not _literal(atom)), default=0)
        (calls if called else pieces).setdefault(stage, []).append(equation)
        stages.update(dict.fromkeys(equation.outvars, stage + called))
    for stage in range(max([*pieces, *calls, 0]) + 1):
        _add_piece(jaxpr, pieces.get(stage, []), values)
        for equation in calls.get(stage, []):
            inputs = [atom.val if _literal(atom) else values[atom] for atom in equation.invars]
            outputs = equation.primitive.bind(*inputs, **equation.params)
            values.update(zip(equation.outvars, outputs, strict=True))
    return [jnp.asarray(atom.val, atom.aval.dtype) if _literal(atom) else values[atom] for atom in jaxpr.outvars]


def _add_piece(jaxpr: Any, equations: list[Any], values: dict[Any, Any]) -> None:
    """Compute some equations of a program, and add what others need of it to the values."""
    own = {variable for equation in equations for variable in equation.outvars}
    inside = set(map(id, equations))
    readers = [equation.invars for equation in jaxpr.eqns if id(equation) not in inside]
    wanted = [atom for atoms in (*readers, jaxpr.outvars) for atom in atoms if not _literal(atom) and atom in own]
    wanted = list(dict.fromkeys(wanted))
    if not wanted:
        return
    read = [atom for equation in equations for atom in equation.invars if not _literal(atom) and atom not in own]
    given = list(dict.fromkeys(read))
    piece = _Program(_Equations(given, wanted, equations))
    leaves = [values[variable] for variable in given]
    kernel = len(equations) >= _FEWEST and bool(given)
    values.update(
        zip(
            wanted,
            (_in_one_kernel(piece, leaves, [False] * len(given)) if kernel else _evaluate(piece, leaves)),
            strict=True,
        )
    )


def _literal(atom: Any) -> bool:
    return isinstance(atom, core.Literal)


def _zeros(variable: Any) -> Array:
    return jnp.zeros(variable.aval.shape, variable.aval.dtype)


# ---- does it suit? ---------------------------------------------------------------------------------------------------


def suits(jaxpr: core.Jaxpr, *, around_calls: bool = False) -> bool:
    """Whether a program has nothing but small products, loops, conditions and what the rules below can write out.

    And calls of other libraries, if it need not be one kernel but may be one before and one after each call.
    """
    return all(_fits(equation, around_calls) for equation in jaxpr.eqns)


def _fits(equation: Any, around_calls: bool) -> bool:
    name, params = equation.primitive.name, equation.params
    if name == _CALL:
        return around_calls
    if name == "dot_general":
        return _multiplications(equation) <= _LARGEST_PRODUCT
    if name in ("cholesky", "triangular_solve"):
        shape = equation.invars[0].aval.shape
        return math.prod(shape) * shape[-1] <= _LARGEST_FACTOR
    if name.startswith("scatter"):  # a kernel has no way to write to several places at once
        stacked = params["dimension_numbers"].operand_batching_dims
        return name == "scatter" and (_one_by_one(equation) if stacked else _places(equation) == 1)
    inner = [jaxpr for value in params.values() for jaxpr in _jaxprs(value)]
    if inner:
        around_calls = around_calls and name in _INLINED
        return name in _RULES and all(suits(jaxpr.jaxpr, around_calls=around_calls) for jaxpr in inner)
    return name in _KNOWN or name in _RULES


def _multiplications(equation: Any) -> int:
    """Of one product of a stack: a library would be called for each."""
    (contracted, _), (stacked, _) = equation.params["dimension_numbers"]
    left, product = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
    return math.prod(product[len(stacked) :]) * math.prod(left[axis] for axis in contracted)


def _places(equation: Any) -> int:
    return math.prod(equation.invars[1].aval.shape[:-1])


def _one_by_one(equation: Any) -> bool:
    """Whether it writes a slice to one place of each array of a small stack: what `vmap` makes of `.at[i].set`."""
    numbers = equation.params["dimension_numbers"]
    return (
        _places(equation) <= _LARGEST_STACK
        and equation.invars[1].aval.ndim == 2
        and tuple(numbers.operand_batching_dims) == (0,) == tuple(numbers.scatter_indices_batching_dims)
        and tuple(numbers.inserted_window_dims) == tuple(numbers.scatter_dims_to_operand_dims)
        and len(numbers.inserted_window_dims) == 1
    )


def _jaxprs(value: Any) -> list[core.ClosedJaxpr]:
    values = value if isinstance(value, tuple | list) else [value]
    return [item for item in values if isinstance(item, core.ClosedJaxpr)]


# What a kernel is known to compute; a program with anything else in it stays as it is.
_KNOWN = frozenset(
    """
    abs add add_any and argmax argmin broadcast_in_dim clamp concatenate convert_element_type copy cos div
    dynamic_slice dynamic_update_slice empty2 eq erf erf_inv erfc exp exp2 expm1 floor gather ge gt integer_pow iota
    is_finite le log log1p logistic lt max min mul ne neg not optimization_barrier or pad platform_index pow
    reduce_and reduce_max reduce_min reduce_or rem reshape rev round rsqrt select_n sign sin slice split sqrt square
    squeeze stack stop_gradient sub tanh transpose unstack xor
    """.split()  # noqa: SIM905 (a list of them would take a page)
)


# ---- the program with its factorisations as loops --------------------------------------------------------------------


def _evaluate(
    program: core.ClosedJaxpr | _Program, arguments: Sequence[Any], wanted: Sequence[Any] | None = None
) -> list[Any]:
    """Run a traced program, operation by operation, with the rules in place of the operations that have one."""
    jaxpr = program.jaxpr
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, program.consts, strict=True))
    values.update(zip(jaxpr.invars, arguments, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if _literal(atom) else values[atom]

    for equation in jaxpr.eqns:
        inputs = [read(atom) for atom in equation.invars]
        rule = _RULES.get(equation.primitive.name)
        if rule is None:
            outputs = equation.primitive.bind(*inputs, **equation.params)
            outputs = outputs if equation.primitive.multiple_results else [outputs]
        else:
            outputs = rule(inputs, equation.params)
        values.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in (jaxpr.outvars if wanted is None else wanted)]


def _while(inputs: list[Any], params: dict[str, Any]) -> list[Any]:
    conditions, bodies = params["cond_nconsts"], params["body_nconsts"]
    of_condition, of_body = inputs[:conditions], inputs[conditions : conditions + bodies]

    def unfinished(carry: list[Any]) -> Array:
        """One truth value, or under `vmap` one for each loop of a batch."""
        condition: Array = _evaluate(params["cond_jaxpr"], [*of_condition, *carry])[0]
        return condition

    def turn(carry: list[Any]) -> list[Any]:
        moved = _evaluate(params["body_jaxpr"], [*of_body, *carry])
        going_on = unfinished(carry)
        if going_on.ndim == 0:
            return moved

        def choose(new: Array, old: Array) -> Array:
            return jnp.where(going_on.reshape(going_on.shape + (1,) * (new.ndim - going_on.ndim)), new, old)

        return [choose(new, old) for new, old in zip(moved, carry, strict=True)]

    return lax.while_loop(lambda carry: jnp.any(unfinished(carry)), turn, inputs[conditions + bodies :])


def _scan(inputs: list[Any], params: dict[str, Any]) -> list[Any]:
    constants, carried = params["num_consts"], params["num_carry"]
    fixed, first, rows = inputs[:constants], inputs[constants : constants + carried], inputs[constants + carried :]

    def step(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        outputs = _evaluate(params["jaxpr"], [*fixed, *carry, *row])
        return outputs[:carried], outputs[carried:]

    last, outputs = lax.scan(step, first, rows, params["length"], params["reverse"], params["unroll"])
    return [*last, *outputs]


def _cond(inputs: list[Any], params: dict[str, Any]) -> list[Any]:
    branches = [partial(_branch, branch) for branch in params["branches"]]
    return lax.switch(inputs[0], branches, *inputs[1:])


def _branch(branch: core.ClosedJaxpr, *inputs: Any) -> list[Any]:
    return _evaluate(branch, inputs)


def _inner(name: str) -> Callable[[list[Any], dict[str, Any]], list[Any]]:
    return lambda inputs, params: _evaluate(params[name], inputs)


def _cholesky(inputs: list[Any], params: dict[str, Any]) -> list[Array]:  # noqa: ARG001
    return [cholesky(inputs[0])]


def _triangular_solve(inputs: list[Any], params: dict[str, Any]) -> list[Array]:
    A, B = inputs
    lower = params["lower"]
    if params["transpose_a"] == params["left_side"]:  # A as the left factor is Aᵀ: X A = B is Aᵀ Xᵀ = Bᵀ
        A, lower = A.mT, not lower
    B = B if params["left_side"] else B.mT
    if params["unit_diagonal"]:
        identity = jnp.eye(A.shape[-1], dtype=A.dtype)
        A = A * (1.0 - identity) + identity
    X = solve_lower(A, B) if lower else jnp.flip(solve_lower(jnp.flip(A, (-2, -1)), jnp.flip(B, -2)), -2)
    return [X if params["left_side"] else X.mT]


def _scatter(inputs: list[Any], params: dict[str, Any]) -> list[Array]:
    """Write to one place, or to one of each array of a stack; a place that is not there is left out."""
    operand, indices, updates = inputs
    numbers = params["dimension_numbers"]
    if not numbers.operand_batching_dims:
        return [lax.scatter_p.bind(*inputs, **params)]
    (axis,) = numbers.inserted_window_dims
    updates = jnp.expand_dims(updates, axis)
    for k in range(operand.shape[0]):
        start = [jnp.int32(0)] * operand.ndim
        start[0], start[axis] = jnp.int32(k), indices[k, 0]
        there = (indices[k, 0] >= 0) & (indices[k, 0] < operand.shape[axis])
        present = lax.dynamic_slice(operand, start, updates[k : k + 1].shape)
        operand = lax.dynamic_update_slice(operand, jnp.where(there, updates[k : k + 1], present), start)
    return [operand]


def _cummax(inputs: list[Any], params: dict[str, Any]) -> list[Array]:
    return [lax.associative_scan(jnp.maximum, inputs[0], reverse=params["reverse"], axis=params["axis"])]


def _reduce_sum(inputs: list[Any], params: dict[str, Any]) -> list[Array]:
    """Sums as products with ones: at every call XLA prepares three buffers for each sum, and none for a product.

    A long sum over all of a matrix goes by columns first, which the processor takes several at a time.
    """
    (A,), axes = inputs, tuple(params["axes"])
    if not jnp.issubdtype(A.dtype, jnp.floating):
        return [jnp.sum(A, axes, dtype=A.dtype)]
    if A.size > _LARGEST_SUM:
        if len(axes) < 2 or A.ndim - 1 not in axes:
            return [jnp.sum(A, axes)]
        A = jnp.sum(A, axes[:-1])
        axes = (A.ndim - 1,)
    ones = jnp.ones([*(A.shape[axis] for axis in axes), 2], A.dtype)
    return [lax.dot_general(A, ones, ((axes, tuple(range(len(axes)))), ((), ())))[..., 0]]


_RULES: dict[str, Callable[[list[Any], dict[str, Any]], list[Any]]] = {
    "while": _while,
    "scan": _scan,
    "cond": _cond,
    "jit": _inner("jaxpr"),
    "pjit": _inner("jaxpr"),
    "closed_call": _inner("call_jaxpr"),
    "custom_jvp_call": _inner("call_jaxpr"),
    "custom_vjp_call": _inner("call_jaxpr"),
    "reduce_sum": _reduce_sum,
    "scatter": _scatter,
    "cummax": _cummax,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
}


def cholesky(K: Array) -> Array:
    """Lower factor of K, or of a stack of matrices: NaN in its last entry at least where there is none."""
    columns = jnp.arange(K.shape[-1])

    def next_row(j: Array, R: Array) -> Array:
        """Row j of R = Lᵀ, from those above it: r = (K_j − Σ_i R_ij R_i) / √(…)_j."""
        above = lax.dynamic_index_in_dim(R, j, -1).mT  # 1×M
        row = lax.dynamic_index_in_dim(K, j, -2) - above @ R  # 1×M
        row = row * lax.rsqrt(lax.dynamic_index_in_dim(row, j, -1))
        return lax.dynamic_update_slice_in_dim(R, jnp.where(columns >= j, row, 0.0), j, -2)

    return lax.fori_loop(0, K.shape[-1], next_row, jnp.zeros_like(K)).mT


def solve_lower(L: Array, B: Array) -> Array:
    """L⁻¹ B, row by row from the first."""

    def substitute(j: Array, X: Array) -> Array:
        row = lax.dynamic_index_in_dim(L, j, -2)  # 1×M
        known = (row @ X)[..., 0, :]
        x = (lax.dynamic_index_in_dim(B, j, -2, keepdims=False) - known) / row[..., 0, j][..., None]
        return lax.dynamic_update_index_in_dim(X, x, j, X.ndim - 2)

    return lax.fori_loop(0, L.shape[-1], substitute, jnp.zeros_like(B))
