"""`custom_linear_solve` and `custom_root`: solutions by the caller's functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from plugrt.errors import ArgumentTypeError, ShapeError, StructureError
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.control_flow.eager import launch
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import active_trace
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace_function import make_parameters, stage

Function = Callable[..., Any]


@with_argument_errors
def custom_linear_solve(
    matvec: Function,
    b: object,
    solve: Callable[[Function, Any], object],
    transpose_solve: Callable[[Function, Any], object] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Returns ``solve(matvec, b)``, an x with ``matvec(x) == b`` (not checked).

    ``b`` is a pytree of arrays; the results of ``matvec`` and ``solve`` have its structure and
    shapes. With ``has_aux`` ``solve`` returns a pair whose second item is arbitrary.
    ``transpose_solve`` and ``symmetric`` are for derivatives, and have no effect here; ``solve``
    need not be differentiable. Raises `StructureError` or `ShapeError` for other results, and
    `ArgumentTypeError` for an object that is no function. As ``jax.lax.custom_linear_solve``.

    >>> lax.custom_linear_solve(lambda x: 2 * x, xp.asarray([2.0, 6.0]), lambda f, b: b / 2)
    Array([1., 3.], dtype=float32)
    """
    title = "custom_linear_solve"
    _check_functions(title, matvec=matvec, solve=solve, transpose_solve=transpose_solve)

    def run(b: object) -> Any:
        _check(title, "matvec", _results(title, matvec, b), b, "b", shapes=True)
        found = solve(matvec, b)
        main = _main(title, found) if has_aux else found
        _check(title, "solve", main, b, "b", shapes=True)
        return found

    return launch(
        title, (matvec, solve), has_aux, {"b": b}, run, _solve_in_python, reads_once=False
    )


@with_argument_errors
def custom_root(
    f: Function,
    initial_guess: object,
    solve: Callable[[Function, Any], object],
    tangent_solve: Callable[[Function, Any], object],
    has_aux: bool = False,
) -> Any:
    """Returns ``solve(f, initial_guess)``, an x for which ``f(x)`` is 0 (not checked).

    ``initial_guess`` is a pytree of arrays; the results of ``f`` and ``solve`` have its structure.
    With ``has_aux`` ``solve`` returns a pair whose second item is arbitrary. ``tangent_solve`` is
    for derivatives, and is not called. Raises `StructureError` for other results, and
    `ArgumentTypeError` for an object that is no function. As ``jax.lax.custom_root``.

    >>> def newton(f, x):
    ...     return lax.fori_loop(0, 5, lambda _, x: x - f(x) / (2 * x), x)
    >>> lax.custom_root(lambda x: x * x - 4, xp.asarray(3.0), newton, lambda g, y: y / g(1.0))
    Array(2., dtype=float32)
    """
    title = "custom_root"
    _check_functions(title, f=f, solve=solve, tangent_solve=tangent_solve)

    def run(initial_guess: object) -> Any:
        _check(title, "f", _results(title, f, initial_guess), initial_guess, "initial_guess")
        found = solve(f, initial_guess)
        _check(
            title, "solve", _main(title, found) if has_aux else found, initial_guess,
            "initial_guess",
        )  # fmt: skip
        return found

    operands = {"initial_guess": initial_guess}
    return launch(title, (f, solve), has_aux, operands, run, _solve_in_python, reads_once=False)


def _solve_in_python(functions: Sequence[Function], **operands: object) -> object:
    [given] = operands.values()
    return functions[1](functions[0], given)


def _check_functions(title: str, **functions: object) -> None:
    for name, function in functions.items():
        if not callable(function) and not (function is None and name == "transpose_solve"):
            raise ArgumentTypeError(f"{name} of {title} is a function; got {function!r:.60}")


def _main(title: str, found: object) -> object:
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise StructureError(
            f"solve of {title} with has_aux returns a pair; it returned {found!r:.60}"
        )
    return found[0]


def _results(title: str, function: Function, given: object) -> object:
    """Returns the types of a function's results, without adding anything to the trace."""
    leaves, spec = pytrees.flatten(given)
    types = [(x.shape, x.dtype, x.weak, x.sharding_type) for x in leaves]
    staged: Staged = stage(
        lambda *flat: function(pytrees.unflatten(spec, flat)),
        make_parameters(types, [f"x[{i}]" for i in range(len(types))]),
        name=title,
        axes=active_trace().axes,
        keep_unused=True,
        forward=False,
    )
    return pytrees.unflatten(staged.out_tree, staged.result_types)


def _check(
    title: str, name: str, found: object, like: object, argument: str, *, shapes: bool = False
) -> None:
    """Raises unless a function's result has the structure of an argument, and its shapes."""
    structures = pytrees.structure(found), pytrees.structure(like)
    if structures[0] != structures[1]:
        raise StructureError(
            f"the result of {name} of {title} has the structure {structures[0]}; it needs that of "
            f"{argument}, {structures[1]}"
        )
    shape = functools.partial(_shape, f"the result of {name} of {title}")
    ours, wanted = ([shape(x) for x in pytrees.leaves(t)] for t in (found, like))
    if shapes and ours != wanted:
        raise ShapeError(
            f"the result of {name} of {title} has the shapes {ours}; it needs those of {argument}, "
            f"{wanted}"
        )


def _shape(name: str, x: object) -> tuple[int, ...]:
    return tuple(x.shape if hasattr(x, "shape") else as_tracer(x, name).shape)
