"""Functions that JAX traces and lowers to StableHLO, without a backend of JAX's.

Imports jax, as only modules do that calls of `from_jax` load.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import jax
import jax.extend.core
import jax.interpreters.partial_eval
import numpy as np

from plugrt.errors import ArgumentTypeError, NeedsJaxBackend, NotAnArray, Unimplemented
from plugrt.lifetime.interruptions import scope
from plugrt.native.known_dtypes import KEY_DTYPES, is_key_dtype
from plugrt.stablehlo.attributes import find_attribute, symbol_of, text_of
from plugrt.stablehlo.inlined_meshes import (
    InlinedMeshes,
    drop_dead_shardings,
    drop_shardings,
    inline_meshes,
)
from plugrt.stablehlo.modules import bytecode
from plugrt.stablehlo.regions import operations_within
from plugrt.tracing.tracer import Tracer

# Programs and messages name lines of users, not lines of plugrt that call JAX.
jax.extend.source_info_util.register_exclusion(__file__)

SETTINGS = (
    "enable_x64", "default_matmul_precision", "numpy_dtype_promotion", "numpy_rank_promotion",
    "threefry_partitionable", "default_prng_impl", "enable_custom_prng", "softmax_custom_jvp",
    "allow_f16_reductions", "random_seed_offset", "high_dynamic_range_gumbel",
    "explicit_x64_dtypes",
)  # fmt: skip
"""JAX's settings that change what a function computes, by their public names."""


def _paths() -> Iterator[str]:
    """Yields the path of each setting that the installed jax has; versions have different ones."""
    for name in SETTINGS:
        if hasattr(getattr(jax, name, None), "value"):  # a context manager, faster to read
            yield f"{name}.value"
        elif hasattr(jax.config, f"jax_{name}"):
            yield f"config.jax_{name}"


# Each warm call reads them, so this is a C function.
read_settings: Callable[[], tuple[Any, ...]] = functools.partial(
    operator.attrgetter(*_paths()), jax
)
"""Returns this thread's values of JAX's settings that change what a function computes."""


class _AbsentClient:
    """The client of an `_AbsentDevice`, its only device: JAX 0.9 counts a client's devices."""

    def __init__(self, device: _AbsentDevice) -> None:
        self.platform = device.platform
        self._devices = [device]

    def devices(self) -> list[_AbsentDevice]:
        return self._devices

    def device_count(self) -> int:
        return len(self._devices)

    def __getattr__(self, name: str) -> NoReturn:
        raise NeedsJaxBackend(
            "a function given to from_jax computes a value with JAX while it is traced (in "
            "jax.ensure_compile_time_eval, say), or puts a value on a device. JAX needs a backend "
            f"of its own for this, and plugrt does not start one (JAX read {name!r} of the client "
            f"for {self.platform!r}). Compute such values with NumPy, or pass them as arguments"
        )


class _AbsentDevice:
    """An object in place of a device, which makes JAX lower for its platform.

    JAX reads the platform of the default device even if a lowering names one, and would start its
    backends to find a default. It accepts as ``jax.default_device`` any object whose class is named
    Device.
    """

    def __init__(self, platform: str) -> None:
        self.platform = platform
        self.device_kind = platform
        self.id = self.process_index = 0
        self.client = _AbsentClient(self)

    def __repr__(self) -> str:
        return f"<no device, of platform {self.platform!r}>"


# One for each platform: keys of JAX's caches contain the device.
_absent_device = functools.cache(_AbsentDevice)


@scope
def _hide_devices(platform: str) -> Iterator[None]:
    """Makes JAX trace and lower for a platform in this thread, without starting a backend."""
    with jax.default_device(_absent_device(platform)):
        yield


_CURES = (
    (
        "Non-hashable static arguments",
        "give from_jax the static arguments too: plugrt.from_jax(f, static_argnums=…)",
    ),
    (
        "plugrt.execution.arrays.array.Array",
        "a function that JAX traces takes no array of plugrt's from outside: pass it as an "
        "argument",
    ),
)


@contextlib.contextmanager
def _cures() -> Iterator[None]:
    """Adds a note to JAX's exceptions that have a cure in plugrt; their types stay."""
    try:
        yield
    except (TypeError, ValueError) as error:
        for words, cure in _CURES:
            if words in str(error):
                error.add_note(f"plugrt: {cure}")
        raise


class _Abstract(jax.ShapeDtypeStruct):
    """A type in place of an array; unhashable, so that JAX refuses it as a static argument."""

    __hash__ = None  # type: ignore[assignment]


_WIDEST = {"b": np.bool_, "i": np.int64, "f": np.float64, "c": np.complex128}
"""The dtypes of Python's scalars, which JAX narrows if jax_enable_x64 is off."""


def describe_type(shape: tuple[int, ...], dtype: np.dtype[Any], weak: bool) -> jax.ShapeDtypeStruct:
    """Returns the type of an array under JAX's settings."""
    return _Abstract(shape, canonical_dtype(dtype, weak), weak_type=weak)  # type: ignore[no-untyped-call]


def canonical_dtype(dtype: np.dtype[Any], weak: bool) -> np.dtype[Any]:
    """Returns the dtype that JAX uses for a dtype: with jax_enable_x64 off, the 32-bit one.

    Weak values, such as Python scalars, have the width that JAX gives them.
    """
    if is_key_dtype(dtype):
        theirs: Any = jax.random.key_dtype(dtype.impl)
        return theirs  # type: ignore[no-any-return]
    wanted = _WIDEST.get(dtype.kind, dtype) if weak else dtype
    return np.dtype(jax.dtypes.canonicalize_dtype(wanted))


@dataclass(frozen=True)
class JaxModule:
    """A function lowered by JAX. Arguments and results are in the order of JAX's pytrees."""

    code: bytes
    """The module, as bytecode; its parameters are in the order of `JaxTracing.dynamic`."""
    results: tuple[jax.ShapeDtypeStruct, ...]
    """The types of its results."""
    memory_kinds: tuple[str | None, ...]
    """The memory kind of each result; None for the default one."""
    out_tree: Any
    """The pytree of the results."""
    division: InlinedMeshes | None
    """The shardings over a mesh of several devices, if it has any."""


class JaxTracing:
    """A function that JAX is to trace, with its static arguments by number and by name."""

    def __init__(
        self, function: Callable[..., Any], statics: Sequence[int], names: Sequence[str], title: str
    ) -> None:
        self._function = function
        self._statics, self._names = statics, names
        self._title = title

        self.clear_cache()

    def clear_cache(self) -> None:
        """Drops JAX's traces of the function."""
        function = self._function

        # A new function: JAX caches by function, but not by all settings.
        def call(*args: object, **kwargs: object) -> Any:
            return function(*args, **kwargs)

        functools.update_wrapper(call, function, updated=())
        self._jitted = jax.jit(
            call,
            static_argnums=tuple(self._statics),
            static_argnames=tuple(self._names),
            keep_unused=True,
        )

    def dynamic(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[Any]:
        """Returns the leaves of the dynamic arguments, in the order of JAX's pytrees."""
        positional = [x for i, x in enumerate(args) if i not in self._statics]
        named = {k: x for k, x in kwargs.items() if k not in self._names}
        leaves: list[Any] = jax.tree_util.tree_leaves((positional, named))
        return leaves

    def donated(
        self, args: Sequence[object], kwargs: Mapping[str, object], platform: str
    ) -> list[bool] | None:
        """Returns for each dynamic leaf whether a function of ``jax.jit`` donates it.

        The leaves are `describe_type`'s. None for other functions.
        """
        if not isinstance(self._function, jax.stages.Wrapped):
            return None
        with _hide_devices(platform), _cures():
            infos = self._function.trace(*args, **kwargs).args_info
        return [info.donated for info in jax.tree_util.tree_leaves(infos)]

    def lower(
        self, args: Sequence[object], kwargs: Mapping[str, object], platform: str
    ) -> JaxModule:
        """Returns the function lowered for plugrt's tracers in place of arrays.

        Raises the function's own exceptions, and `Unimplemented` for operations that cannot run
        outside of JAX.
        """
        args, kwargs = self._abstract(args, kwargs)
        with _hide_devices(platform):
            with _cures():
                traced = self._jitted.trace(*args, **kwargs)
            results, out_tree = jax.tree_util.tree_flatten(traced.out_info)
            try:
                module = traced.lower(lowering_platforms=(platform,)).compiler_ir()
            except (NotImplementedError, ValueError) as error:
                if _is_python_call(str(error)):
                    raise self._refuse_callbacks() from error
                raise Unimplemented(
                    f"JAX cannot lower {self._title!r} for the platform {platform!r}: {error}. "
                    "JAX has some functions for platforms of its own alone: run it on one of these"
                ) from error
        self._check(module, results)
        jaxpr = traced.jaxpr.jaxpr
        put_over, kinds = self._find_put_axes(jaxpr), self._find_memory_kinds(jaxpr, module)
        code = drop_dead_shardings(bytecode(module), self._title)
        division = inline_meshes(code, self._title)
        if division is None:
            self._require_shardy(module, code)
            code = drop_shardings(code, self._title)
            if put_over:  # JAX lowers `device_put` to nothing on CPUs
                unsaid = [None] * len(jaxpr.invars), [None] * len(results)
                division = InlinedMeshes(code, put_over, *unsaid)
        return JaxModule(
            division.code if division else code, tuple(results), kinds, out_tree, division
        )

    def _find_put_axes(self, jaxpr: Any) -> Mapping[str, int] | None:
        """Returns the axes of the mesh that ``device_put`` puts values over, if any.

        Raises `Unimplemented` for shardings of one device of JAX's, and for several meshes.
        """
        found = [*_find_shardings(jaxpr)]
        if found:  # JAX ignores those that no result uses
            jaxpr, _ = jax.interpreters.partial_eval.dce_jaxpr(
                jaxpr, [True] * len(jaxpr.outvars), instantiate=True
            )
            found = [*_find_shardings(jaxpr)]
        for primitive, sharding in found:
            if isinstance(sharding, jax.sharding.SingleDeviceSharding):
                said = "device=, backend= or a sharding" if primitive == "jit" else "a sharding"
                raise Unimplemented(
                    f"{self._title!r} names a device of JAX's, by {said} of jax.{primitive}: "
                    f"{sharding}. plugrt has devices of its own: leave it out, and give from_jax "
                    "device= or backend=, or put the arguments there"
                )
        meshes = [
            sharding.mesh.shape
            for primitive, sharding in found
            if primitive == "device_put" and isinstance(sharding, jax.sharding.NamedSharding)
        ]
        sizes = {math.prod(shape.values()) for shape in meshes} - {1}
        if len(sizes) > 1:
            counts = " and of ".join(map(str, sorted(sizes)))
            raise Unimplemented(
                f"{self._title!r} puts values over meshes of {counts} devices; a program runs on "
                "one number of them"
            )
        return next((shape for shape in meshes if math.prod(shape.values()) > 1), None)

    def _find_memory_kinds(self, jaxpr: Any, module: Any) -> tuple[str | None, ...]:
        """Returns the memory kind that ``device_put`` or the outer ``jit`` states for each result.

        Raises `Unimplemented` for ``in_shardings`` of another memory.
        """
        [main] = [op for op in module.body.operations if symbol_of(op) == "main"]
        stated = find_attribute(main, "res_attrs") or [()] * len(jaxpr.outvars)
        kinds = [*map(_find_kind, stated)]
        if isinstance(self._function, jax.stages.Wrapped):
            # Here the function is in another ``jit``; JAX ignores memory kinds of inner ones.
            for outer in (eqn for eqn in jaxpr.eqns if "out_shardings" in eqn.params):
                taken = [*map(_kind_of, outer.params["in_shardings"])]
                if any(taken):
                    raise Unimplemented(
                        f"{self._title!r} has in_shardings of the memory kinds {taken}: from_jax "
                        "takes arguments in the default memory, which None stands for here"
                    )
                left = map(_kind_of, outer.params["out_shardings"])
                known = dict(zip(map(id, outer.outvars), left, strict=True))
                kinds = [known.get(id(var)) or kind
                         for var, kind in zip(jaxpr.outvars, kinds, strict=True)]  # fmt: skip
        return tuple(kinds)

    def _abstract(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Returns the arguments with the tracers replaced by their types."""

        def describe(x: object) -> Any:
            return jax.tree_util.tree_map(self._describe, x)

        return (
            [x if i in self._statics else describe(x) for i, x in enumerate(args)],
            {k: x if k in self._names else describe(x) for k, x in kwargs.items()},
        )

    def _describe(self, leaf: object) -> jax.ShapeDtypeStruct:
        if not isinstance(leaf, Tracer):
            cls = type(leaf)
            raise ArgumentTypeError(
                f"an argument of {self._title!r} is of type {cls.__module__}.{cls.__qualname__}, a "
                "container for plugrt and none for JAX; register it with "
                "jax.tree_util.register_pytree_node as well"
            )
        return describe_type(leaf.shape, leaf.dtype, leaf.weak)

    def _check(self, module: Any, results: Sequence[Any]) -> None:
        """Raises `Unimplemented` for a module that only JAX can run, `NotAnArray` for keys."""
        for result in results:
            if result.dtype.name in KEY_DTYPES:
                continue
            if not isinstance(result.dtype, np.dtype) or result.dtype == jax.dtypes.float0:
                raise NotAnArray(
                    f"{self._title!r} returned an array of {result.dtype}, which only JAX has; "
                    "return jax.random.key_data(key) for a key, and no gradient of integers"
                )
        for operation in operations_within(module.operation):
            target = find_attribute(operation, "call_target_name")
            if target is not None and _is_python_call(text_of(target)):
                raise self._refuse_callbacks()

    def _require_shardy(self, module: Any, code: bytes) -> None:
        """Raises `Unimplemented` for shardings over several devices that are not Shardy's."""
        count = find_attribute(module.operation, "mhlo.num_partitions")
        if count is not None and count.value != 1 and b"mhlo.sharding" in code:
            raise Unimplemented(
                f"{self._title!r} is sharded by JAX over {count.value} devices, without "
                "Shardy's meshes; leave jax_use_shardy_partitioner on"
            )

    def _refuse_callbacks(self) -> Unimplemented:
        return Unimplemented(
            f"{self._title!r} calls Python (jax.debug.print, pure_callback or io_callback): JAX "
            "gives plugrt no access to the called function. Call plugrt.debug.print, "
            f"plugrt.pure_callback or plugrt.io_callback before or after {self._title!r}, in a "
            "function of plugrt.jit"
        )


def _find_shardings(jaxpr: Any) -> Iterator[tuple[str, Any]]:
    """Yields the shardings that a jaxpr's equations state, each with the name of its primitive."""
    for eqn in jaxpr.eqns:
        for name, value in eqn.params.items():
            if name != "srcs":  # the present device of the value of a `device_put`
                yield from (
                    (eqn.primitive.name, each)
                    for each in jax.tree_util.tree_leaves(value)
                    if isinstance(each, jax.sharding.Sharding)
                )
        for inner in jax.extend.core.jaxprs_in_params(eqn.params):
            yield from _find_shardings(inner)


def _kind_of(sharding: object) -> str | None:
    kind = getattr(sharding, "memory_kind", None)
    return None if kind == "device" else kind  # JAX's name of the default memory


def _find_kind(result: Any) -> str | None:
    """Returns the memory kind in a result's attributes."""
    kinds = [text_of(each.attr) for each in result if each.name == "mhlo.memory_kind"]
    return kinds[0] if kinds and kinds[0] != "device" else None


def _is_python_call(words: str) -> bool:
    """Whether the target of a custom call, or JAX's error about one, means a Python callback."""
    return "callback" in words.lower() or "debug_print" in words
