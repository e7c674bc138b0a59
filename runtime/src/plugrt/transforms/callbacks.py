"""`pure_callback` and `io_callback`: calls of Python functions from compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.callbacks.host_callbacks import NumberedCallback
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    DtypeError,
    NotAnArray,
    ShapeError,
    StructureError,
    Unimplemented,
)
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.host_data import check_dtype, narrow_dtype
from plugrt.execution.executables.effects import await_ordered
from plugrt.execution.launches.pipeline import Pipeline
from plugrt.execution.placement.device_claims import claims_of, resolve_devices
from plugrt.execution.shardings.replica_sharding import current_replicas
from plugrt.execution.shardings.sharding_base import SingleDeviceSharding
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.execution.transfers.host_values import as_array
from plugrt.execution.transfers.whole_arrays import put_beside
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.frames.traceback_filter import describe_call_site
from plugrt.interface import TensorType
from plugrt.lax.parallel.replica_calls import call_on_replicas
from plugrt.settings.declarations import config
from plugrt.stablehlo.callback_order import add_callback
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.trace import Trace, current_trace
from plugrt.tracing.tracer import Tracer

_NARROWED = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
_MOST = 60


class ResultTypes:
    """The types that a call of a Python function promises, as a pytree, and their check.

    ``promised`` is the caller's pytree of objects with shape and dtype. Raises `ArgumentTypeError`
    for a leaf without them, `UnsupportedDtype` for a dtype that no device has, and `DtypeError` for
    one of 64 bits where ``enable_x64`` is False.
    """

    def __init__(self, title: str, promised: Any) -> None:
        named = pytrees.flatten_with_paths(promised)
        self.spec = pytrees.flatten(promised)[1]
        self._paths = [path for path, _ in named]
        self.types = [read_result_type(f"result_shape_dtypes{p} of {title}", x) for p, x in named]

    def blank(self) -> list[npt.NDArray[Any]]:
        """Returns arrays of zeros of the promised types."""
        return [np.zeros(promised.shape, promised.dtype) for promised in self.types]

    def check(self, returned: object) -> list[npt.NDArray[Any]]:
        """Returns the leaves of the function's result, row-major and with the promised types.

        Number, shapes and dtypes are compared; the structure is the promised one, as in JAX. Unless
        ``enable_x64`` is on, 64-bit numbers, including Python's, are accepted for 32-bit ones.
        """
        leaves = pytrees.leaves(returned)
        if len(leaves) != len(self.types):
            raise StructureError(
                f"it returned {len(leaves)} arrays, {returned!r:.{_MOST}}; result_shape_dtypes "
                f"promises {len(self.types)}: {_list_types(self.types)}"
            )
        return [
            _check_leaf(f"the result{path}", leaf, wanted)
            for path, leaf, wanted in zip(self._paths, leaves, self.types, strict=True)
        ]


def read_result_type(name: str, leaf: object) -> TensorType:
    """Returns the type that an object's shape and dtype promise; raises as `ResultTypes` does."""
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype") or isinstance(leaf, type):
        raise ArgumentTypeError(
            f"{name} must have a shape and a dtype, as plugrt.ShapeDtypeStruct has; got "
            f"{leaf!r:.{_MOST}} of type {type(leaf).__qualname__}"
        )
    dtype = np.dtype(leaf.dtype)
    check_dtype(dtype, name)
    if narrow_dtype(dtype) != dtype:
        raise DtypeError(
            f"{name} has the dtype {dtype.name}, and numbers of 64 bits are turned off "
            "(enable_x64 is False)"
        )
    return TensorType(tuple(int(n) for n in leaf.shape), dtype)


def _check_leaf(name: str, leaf: object, wanted: TensorType) -> npt.NDArray[Any]:
    found = np.asarray(leaf)
    if found.dtype.kind in "OSUMm":
        raise NotAnArray(
            f"{name} is {leaf!r:.{_MOST}} of type {type(leaf).__qualname__}; {wanted} was promised"
        )
    if found.shape != wanted.shape:
        raise ShapeError(f"{name} has the shape {found.shape}; {wanted} was promised")
    if found.dtype != wanted.dtype:
        narrowed = _NARROWED.get(found.dtype.name) == wanted.dtype.name
        if not narrowed or config.enable_x64:
            raise DtypeError(f"{name} has the dtype {found.dtype.name}; {wanted} was promised")
    return np.ascontiguousarray(found, wanted.dtype).reshape(wanted.shape)


def _list_types(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types)) or "none"


VMAP_METHODS = (
    None, "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized",
)  # fmt: skip


@with_argument_errors
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: object,
    *args: object,
    sharding: SingleDeviceSharding | None = None,
    vmap_method: str | None = None,
    **kwargs: object,
) -> Any:
    """Returns ``callback(*args, **kwargs)``, called by the program while it runs.

    ``callback`` is a function without side effects: the compiler may call it more than once, or not
    at all. It receives its own NumPy arrays (JAX: its arrays, on a CPU) in the pytrees of ``args``
    and ``kwargs``, and returns arrays like the leaves of ``result_shape_dtypes``, a pytree of
    objects with shape and dtype (`ShapeDtypeStruct`). It may itself use plugrt.

    Under ``jit``, ``pmap`` and control flow the program calls it; number, shapes and dtypes of its
    results are checked then, and an exception becomes the `Internal` error of the launch, with the
    function's traceback and the line of this call. Elsewhere Python calls it at once (JAX: by a
    program), on any backend, and its exceptions propagate. ``sharding`` names the one device of a
    program that has one; ``vmap_method`` is checked and has no effect, since plugrt has no
    ``vmap``. Raises `Unimplemented` if the program is compiled for a backend that cannot call
    Python. As ``jax.pure_callback``.

    >>> plugrt.pure_callback(np.sort, plugrt.ShapeDtypeStruct((3,), "int32"), xp.asarray([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    if vmap_method not in VMAP_METHODS:
        raise ArgumentError(
            f"vmap_method of pure_callback must be one of {VMAP_METHODS}; got {vmap_method!r}"
        )
    return _call("pure_callback", callback, result_shape_dtypes, args, kwargs, sharding)


@with_argument_errors
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: object,
    *args: object,
    sharding: SingleDeviceSharding | None = None,
    ordered: bool = False,
    **kwargs: object,
) -> Any:
    """As `pure_callback`, for a function with side effects: it is called exactly once.

    Calls that are ``ordered`` happen in the order of the program, and after the ordered calls of
    programs that this thread launched before, on any devices. Where each device calls, as under
    ``shard_map`` and ``pmap``, the order is each device's. `effects_barrier` waits for all of them,
    and raises the error of one that failed; the interpreter's exit waits, too. As
    ``jax.experimental.io_callback``.

    >>> seen = []
    >>> f = plugrt.jit(lambda x: plugrt.io_callback(seen.append, None, x, ordered=True))
    >>> f(1), f(2), plugrt.effects_barrier(), [int(x) for x in seen]
    (None, None, None, [1, 2])
    """
    return _call(
        "io_callback", callback, result_shape_dtypes, args, kwargs, sharding,
        effect=True, ordered=bool(ordered),
    )  # fmt: skip


def _call(
    title: str,
    callback: Callable[..., Any],
    promised: object,
    args: tuple[object, ...],
    kwargs: dict[str, Any],
    sharding: object,
    *,
    effect: bool = False,
    ordered: bool = False,
) -> Any:
    require_function(title, callback)
    if sharding is not None and not isinstance(sharding, SingleDeviceSharding):
        raise ArgumentTypeError(
            f"sharding of {title} is None or a SingleDeviceSharding; got {sharding!r:.60}"
        )
    leaves, spec = pytrees.flatten((args, kwargs))
    names = [
        f"argument {path} of {title}" for path, _ in pytrees.flatten_with_paths((args, kwargs))
    ]
    results = ResultTypes(title, promised)

    def call(*values: object) -> Any:
        args, kwargs = pytrees.unflatten(spec, values)
        return callback(*args, **kwargs)

    call.__name__ = getattr(callback, "__name__", repr(callback))
    return call_python(title, call, results, leaves, names, effect=effect, ordered=ordered)


def require_function(title: str, callback: object) -> None:
    """Raises `ArgumentTypeError` unless ``callback`` can be called."""
    if not callable(callback):
        raise ArgumentTypeError(f"{title} takes a function; got {callback!r:.60}")


def call_python(
    title: str,
    function: Callable[..., Any],
    results: ResultTypes,
    leaves: Sequence[object],
    names: Sequence[str],
    *,
    effect: bool,
    ordered: bool,
    partitioned: bool = False,
    one_device: bool = False,
) -> Any:
    """Calls a function, or in a trace adds the call to the program; returns its results."""
    trace = current_trace()
    if trace is None:
        arrays = [as_array(leaf, name) for leaf, name in zip(leaves, names, strict=True)]
        if (here := current_replicas()) and any(here.is_like(a.sharding) for a in arrays):

            def call_of_each(*operands: object) -> Any:
                return call_python(
                    title, function, results, operands, names, effect=effect, ordered=ordered
                )

            return call_on_replicas(call_of_each, here, arrays, {}, Pipeline())
        return _call_now(title, function, results, arrays, names, ordered)
    tracers = [as_tracer(leaf, name) for leaf, name in zip(leaves, names, strict=True)]
    described = f"{function.__name__!r} of {title}{describe_call_site()}"
    if trace.mesh is not None:
        _check_region(trace, described)
    callback = NumberedCallback(
        lambda *values: results.check(function(*values)),
        described,
        has_effect=effect,
        ordered=ordered,
        of_parts=trace.mesh is not None,
        partitioned=partitioned,
        one_device=one_device,
        blank=results.blank,
    )
    return _add_call(trace, callback, results, tracers)


def _check_region(trace: Trace, described: str) -> None:
    """Raises `Unimplemented` for a call in a region of some axes of a mesh."""
    mesh = trace.mesh
    assert mesh is not None
    left = [name for name, size in mesh.shape.items() if name not in trace.axes and size > 1]
    if left:
        raise Unimplemented(
            f"{described} in a shard_map over {list(trace.axes)}: over {left} the compiler divides "
            "the function, so that no device has a part to call it with. Leave axis_names out"
        )


def _add_call(
    trace: Trace, callback: NumberedCallback, results: ResultTypes, operands: Sequence[Tracer]
) -> Any:
    trace.callbacks[callback.number] = callback
    made = add_callback(
        callback.number,
        [x.value for x in operands],
        [trace.mlir_type(t.shape, t.dtype) for t in results.types],
        effect=callback.has_effect,
        ordered=callback.ordered,
        location=trace.location(),
    )
    return pytrees.unflatten(results.spec, [Tracer(value, trace) for value in made.results])


def _call_now(
    title: str,
    function: Callable[..., Any],
    results: ResultTypes,
    arrays: Sequence[Array],
    names: Sequence[str],
    ordered: bool,
) -> Any:
    """Calls a function outside of any trace; puts its results on the arguments' devices."""
    avals = [array._aval for array in arrays]
    devices, committed = resolve_devices(claims_of(avals, lambda i: names[i]), title)
    if ordered:
        await_ordered()
    returned = results.check(function(*[np.array(array) for array in arrays]))
    here = SingleDeviceSharding(devices[0])
    where = next((a.sharding for a in avals if isinstance(a.sharding, TiledSharding)), here)
    return pytrees.unflatten(
        results.spec, [put_beside(host, where, committed) for host in returned]
    )
