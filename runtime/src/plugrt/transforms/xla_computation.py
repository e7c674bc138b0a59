"""`xla_computation`: a function as an XLA program, neither optimised nor compiled.

JAX had it until 0.4.30; names, parameters and results follow its documentation.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias, overload

from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError, UnknownPlatform
from plugrt.execution.arrays.arguments import traced_types
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.frames.argument_errors import require_flag, with_argument_errors
from plugrt.frames.traceback_filter import with_user_frames
from plugrt.interface import TensorType
from plugrt.plugins.selection.backends import get_backend, process_backends
from plugrt.plugins.selection.platform_names import expand_platform_alias, known_platforms
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.entry_attributes import set_counts
from plugrt.stablehlo.modules import rename
from plugrt.stablehlo.regions import functions_by_name
from plugrt.stablehlo.xla_computation import XlaComputation
from plugrt.tracing.captures import embed_captured
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace_function import make_parameters, stage
from plugrt.transforms.call_arguments import ArgumentRules, check_function
from plugrt.transforms.shape_dtype_struct import ShapeDtypeStruct, describe_avals

AxisEnv = Sequence[tuple[str, int]]
"""Pairs of an axis name and its size, outermost first."""
_MANY = 100
"""The number of parameters above which ``tuple_args=None`` makes one tuple of them."""


@overload
def xla_computation(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = ...,
    axis_env: AxisEnv | None = ...,
    in_parts: object = ...,
    out_parts: object = ...,
    backend: str | None = ...,
    tuple_args: bool | None = ...,
    instantiate_const_outputs: bool | None = ...,
    return_shape: Literal[False] = ...,
    donate_argnums: int | Iterable[int] = ...,
) -> Callable[..., XlaComputation]: ...
@overload
def xla_computation(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = ...,
    axis_env: AxisEnv | None = ...,
    in_parts: object = ...,
    out_parts: object = ...,
    backend: str | None = ...,
    tuple_args: bool | None = ...,
    instantiate_const_outputs: bool | None = ...,
    *,
    return_shape: Literal[True],
    donate_argnums: int | Iterable[int] = ...,
) -> Callable[..., tuple[XlaComputation, Any]]: ...
@with_argument_errors
def xla_computation(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: AxisEnv | None = None,
    in_parts: object = None,
    out_parts: object = None,
    backend: str | None = None,
    tuple_args: bool | None = False,
    instantiate_const_outputs: bool | None = None,
    return_shape: bool = False,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[..., XlaComputation | tuple[XlaComputation, Any]]:
    """Returns a function that converts ``fun``, for example arguments, to an XLA program.

    Arguments are arrays, scalars, objects with ``shape`` and ``dtype``, and pytrees of them; a
    named tuple is a container. Nothing is computed and no backend is needed: ``backend`` may name
    one whose device is not here.

    - ``static_argnums``, ``donate_argnums``: as for `plugrt.jit`.
    - ``axis_env``: pairs of an axis name and its size, such as ``[("i", 4), ("j", 2)]``, that
      collectives in ``fun`` may name. Replicas are numbered with the last axis fastest.
    - ``in_parts``, ``out_parts``: the number of parts of each dimension of arguments and results:
      None (each device has the whole) or a tuple such as ``(2, 1)``, or pytree prefixes of these.
      ``in_parts`` of several arguments is a tuple.
    - ``tuple_args``: whether the program has one tuple parameter; None: if there are more than 100
      arguments.
    - ``instantiate_const_outputs`` does nothing, as in JAX: constant results are always there.
    - ``return_shape``: whether the result is a pair of the program and a pytree of
      `plugrt.ShapeDtypeStruct` for the results of ``fun``.

    Arrays that ``fun`` closes over become constants. Raises `ArgumentError` for wrong options, at
    once, and errors of tracing when the result is called.

    >>> print(plugrt.xla_computation(lambda x: xp.sin(xp.cos(x)))(3.0).as_hlo_text())
    HloModule xla_computation__lambda_, entry_computation_layout={(f32[])->(f32[])}
    <BLANKLINE>
    ENTRY main.1 {
      Arg_0.1 = f32[] parameter(0)
      cosine.1 = f32[] cosine(Arg_0.1)
      sine.1 = f32[] sine(cosine.1)
      ROOT tuple.1 = (f32[]) tuple(sine.1)
    }
    <BLANKLINE>
    <BLANKLINE>
    """
    check_function("xla_computation", fun)
    require_flag("xla_computation", "return_shape", return_shape)
    require_flag("xla_computation", "tuple_args", tuple_args, optional=True)
    require_flag(
        "xla_computation", "instantiate_const_outputs", instantiate_const_outputs, optional=True
    )
    _check_backend(backend)
    axes = _read_axes(axis_env)
    rules = ArgumentRules(fun, _numbers(static_argnums), None, _numbers(donate_argnums), None)

    @functools.wraps(fun)
    @with_user_frames
    def make(*args: object, **kwargs: object) -> XlaComputation | tuple[XlaComputation, Any]:
        bound = rules.bind(args, kwargs)
        staged = _choose_platform(_stage(fun, rules, bound, axes), backend)
        embed_captured(staged.module, len(staged.parameters), staged.plan.constants)
        rename(staged.module, f"xla_computation_{rules.title}")
        _state_parts(staged, bound, in_parts, out_parts)
        many = len(staged.parameters) > _MANY
        computation = XlaComputation(
            staged.module,
            tuple_args=many if tuple_args is None else bool(tuple_args),
            return_tuple=True,
        )
        if not return_shape:
            return computation
        shapes = [ShapeDtypeStruct(t.shape, t.dtype) for t in staged.output_types]
        return computation, pytrees.unflatten(staged.out_tree, shapes)

    return make


def _stage(
    fun: Callable[..., Any], rules: ArgumentRules, bound: FlatCall, axes: dict[str, int]
) -> Staged:
    def call(*leaves: object) -> Any:
        args, kwargs = bound.rebuild(leaves)
        return fun(*args, **kwargs)

    names = rules.names(bound)
    types = traced_types(describe_avals(bound.leaves, lambda i: names[i]))
    return stage(
        call,
        make_parameters(types, names, rules.donated(bound)),
        name=rules.title,
        axes=axes,
        keep_unused=True,
        forward=False,
    )


def _choose_platform(staged: Staged, backend: str | None) -> Staged:
    """Returns the trace lowered for a backend, or the default one, if it depends on it."""
    if not staged.depends_on_platform:
        return staged
    if backend is None:
        return staged.lowered_for(process_backends().platforms_of(get_backend()))
    return staged.lowered_for([backend, *expand_platform_alias(backend)])


def _state_parts(staged: Staged, bound: FlatCall, in_parts: object, out_parts: object) -> None:
    if in_parts is None and out_parts is None:
        return
    arguments = results = None
    if in_parts is not None:
        types = [p.type for p in staged.parameters]
        leaves = pytrees.unflatten(bound.spec, range(len(types)))[0]
        types = types[: len(pytrees.leaves(leaves))]
        found = read_parts("in_parts", in_parts, leaves, types)
        arguments = [*found, *[None] * (len(staged.parameters) - len(found))]
    if out_parts is not None:
        types = list(staged.output_types)
        leaves = pytrees.unflatten(staged.out_tree, range(len(types)))
        results = read_parts("out_parts", out_parts, leaves, types)
    state_parts(staged.module, arguments, results)


def _numbers(argnums: int | Iterable[int]) -> int | Sequence[int]:
    return argnums if isinstance(argnums, int) else tuple(argnums)


def _check_backend(backend: str | None) -> None:
    if backend is None:
        return
    if not isinstance(backend, str):
        raise ArgumentTypeError(
            f"xla_computation's backend is the name of a platform; got {backend!r:.60}"
        )
    known = known_platforms()
    if backend not in known:
        raise UnknownPlatform(
            f"xla_computation's backend {backend!r} is not a platform that plugrt supports; it "
            "supports "
            f"{', '.join(sorted(known))}"
        )


def _read_axes(axis_env: AxisEnv | None) -> dict[str, int]:
    """Returns sizes by name. Raises `ArgumentError` for an object that is no list of pairs."""
    axes: dict[str, int] = {}
    try:
        pairs = [(name, operator.index(size)) for name, size in axis_env or ()]
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            "xla_computation's axis_env takes pairs of a name and a size, such as [('i', 4)]; got "
            f"{axis_env!r:.80}"
        ) from error
    for name, size in pairs:
        if size < 1:
            raise ArgumentError(f"axis_env has the axis {name!r} of size {size}; it is at least 1")
        if name in axes:
            raise ArgumentError(f"axis_env names the axis {name!r} twice")
        axes[name] = size
    return axes


Parts: TypeAlias = tuple[int, ...] | None
"""The number of parts of each dimension of an array; None: it is replicated."""


def read_parts(what: str, prefix: object, full: object, types: Sequence[TensorType]) -> list[Parts]:
    """Returns the parts of each leaf of ``full``, for a pytree prefix of it.

    A leaf of the prefix is None or a tuple of positive integers, one for each dimension. Raises
    `ArgumentTypeError`, `StructureError` and `ShapeError`, which name the argument ``what``.
    """
    for leaf in pytrees.flatten_with_none(prefix, _is_parts)[0]:
        if leaf is not None and not _is_parts(leaf):
            raise ArgumentTypeError(
                f"{what} takes None or a tuple of positive integers, such as (2, 1), for each "
                f"array; got {leaf!r:.80}"
            )
    found = spread_prefix(prefix, full, what, "what it divides", _is_parts)
    for parts, one in zip(found, types, strict=True):
        if parts is not None and len(parts) != len(one.shape):
            raise ShapeError(
                f"{what} divides {one} into {parts}: that is {len(parts)} numbers for "
                f"{len(one.shape)} dimensions"
            )
    return found


def _is_parts(x: object) -> bool:
    return isinstance(x, tuple) and bool(x) and all(type(n) is int and n > 0 for n in x)


def state_parts(
    module: ir.Module, arguments: Sequence[Parts] | None, results: Sequence[Parts] | None
) -> None:
    """Adds the parts to ``main``, as GSPMD shardings of its parameters and results.

    Raises `ArgumentError` if arrays are divided over different numbers of devices.
    """
    stated = [parts for parts in (*(arguments or ()), *(results or ())) if parts]
    counts = {math.prod(parts): parts for parts in stated if math.prod(parts) > 1}
    if len(counts) > 1:
        raise ArgumentError(
            "in_parts and out_parts divide arrays over different numbers of devices: "
            + ", ".join(f"{parts} over {count}" for count, parts in counts.items())
        )
    main = functions_by_name(module)["main"]
    with module.context:
        set_counts(module, partitions=max(counts, default=1))
        for key, parts_of in (("arg_attrs", arguments), ("res_attrs", results)):
            if parts_of is not None:
                _add_attributes(main, key, [_gspmd(parts) for parts in parts_of])


def _gspmd(parts: Parts) -> str:
    if parts is None or math.prod(parts) == 1:
        return "{replicated}"
    devices = ",".join(map(str, range(math.prod(parts))))
    return f"{{devices=[{','.join(map(str, parts))}]{devices}}}"


def _add_attributes(main: Any, key: str, shardings: Sequence[str]) -> None:
    before = [*ir.ArrayAttr(main.attributes[key])] if key in main.attributes else []
    dictionaries = [{named.name: named.attr for named in ir.DictAttr(d)} for d in before] or [
        {} for _ in shardings
    ]
    for attributes, sharding in zip(dictionaries, shardings, strict=True):
        attributes["mhlo.sharding"] = ir.StringAttr.get(sharding)
    main.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(d) for d in dictionaries])
