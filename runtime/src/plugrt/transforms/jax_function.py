"""`JaxFunction`: a jitted function that JAX traces, the result of `from_jax`. Imports jax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError, IntegerOverflow, NotAnArray
from plugrt.execution.arrays.arguments import TracedType
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.host_data import python_scalar, scalar_dtype
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.launches.float_checks import Rerun
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.placement.device_claims import Claim
from plugrt.execution.placement.launch_shardings import AskedShardings
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.named_sharding import NamedSharding, is_abstract
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.trees import pytrees
from plugrt.frames.traceback_filter import filter_traceback, warn_user
from plugrt.interface import Client
from plugrt.native.known_dtypes import KEY_DTYPES
from plugrt.plugins.selection.backends import process_backends
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.diagnostics import file_and_line
from plugrt.stablehlo.inlined_meshes import Dimensions, InlinedMeshes, names_mesh
from plugrt.tracing.emit import active_trace, convert, keys_of, with_weakness, words_of
from plugrt.tracing.inner_calls import inline_main
from plugrt.tracing.key_words import is_key
from plugrt.tracing.trace import Trace, current_trace
from plugrt.tracing.traceable import P, R
from plugrt.tracing.tracer import Tracer
from plugrt.transforms.call_arguments import ArgumentRules
from plugrt.transforms.jax_lowering import (
    JaxTracing,
    canonical_dtype,
    describe_type,
    read_settings,
)
from plugrt.transforms.jit_function import JitFunction
from plugrt.transforms.stages import Traced

_LEAVES = frozenset((Array, Tracer, np.ndarray, bool, int, float, complex))


def adopt_classes(value: object) -> bool:
    """Registers with plugrt the classes in a pytree that are containers only for JAX.

    Returns whether there were any. They stay registered, so that `plugrt.jit` accepts them as well.
    """
    found = False
    while new := {type(leaf): leaf for leaf in pytrees.leaves(value) if _is_container(leaf)}:
        found = True
        for cls in new:
            pytrees.register_node(cls, _flatten, jax.tree_util.tree_unflatten)
    return found


def _is_container(leaf: object) -> bool:
    return type(leaf) not in _LEAVES and not jax.tree_util.all_leaves([leaf])


def _flatten(value: object) -> tuple[list[Any], Any]:
    """Returns the children of a container, and the data from which JAX rebuilds it."""
    return jax.tree_util.tree_flatten(value, is_leaf=lambda x: x is not value)


def refuse_jax_values(leaves: Sequence[object], name: Callable[[int], str]) -> None:
    """Raises for JAX's tracers, and for arrays of dtypes that only JAX has.

    ``name(i)`` is the name of the i-th leaf.
    """
    for i, leaf in enumerate(leaves):
        if type(leaf) in _LEAVES:
            continue
        if isinstance(leaf, jax.core.Tracer):
            raise ArgumentTypeError(
                f"{name(i)} is traced by JAX ({leaf!r:.60}): a function that from_jax returns runs "
                "on plugrt's backends, and a program of JAX's cannot call it. Call the original "
                "function there, and give from_jax the outermost function"
            )
        if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise NotAnArray(
                f"{name(i)} has the dtype {leaf.dtype}, which only JAX has. Pass the words of a "
                "key, jax.random.key_data(key) or plugrt.random.PRNGKey(seed), and make it a key "
                "again within the function: jax.random.wrap_key_data"
            )


_FLOAT64 = np.dtype(np.float64)


@dataclass(slots=True, kw_only=True)
class JaxBound(FlatCall):
    """A call of a function that JAX traces, with all other facts that its program depends on."""

    platform: str
    """The platform that JAX lowers for."""
    wide: frozenset[int]
    """The numbers of the leaves that are Python scalars to which JAX gives 64 bits."""

    @property
    def static_key(self) -> tuple[Any, ...]:
        """The static values, the platform and the wide scalars, as part of a cache key."""
        return (*FlatCall.static_key.__get__(self), self.platform, self.wide)


class JaxFunction(JitFunction[P, R]):
    """A jitted function that JAX traces: one for each combination of JAX's settings."""

    def __init__(
        self,
        function: Callable[P, R],
        rules: ArgumentRules,
        settings: tuple[Any, ...],
        **options: Any,
    ) -> None:
        """``settings`` are a result of `read_settings`, ``options`` are `JitFunction`'s."""
        super().__init__(function, rules, kind=("from_jax", settings), **options)
        self._settings = settings
        self._options = options
        self._others: dict[tuple[Any, ...], JaxFunction[P, R]] = {}
        self._tracing = JaxTracing(
            function, sorted(rules.static_nums), sorted(rules.static_names), rules.title
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            settings = read_settings()
            if settings != self._settings:
                return self._under(settings)(*args, **kwargs)
            return JitFunction.__call__(self, *args, **kwargs)
        except Exception as error:  # raised again without plugrt's frames
            if current_trace() is None:
                filter_traceback(error)
            raise

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
        settings = read_settings()
        if settings != self._settings:
            return self._under(settings)._trace(args, kwargs)
        return super()._trace(args, kwargs)

    def clear_cache(self) -> None:
        """Drops the programs compiled for this function, under all settings of JAX."""
        super().clear_cache()
        self._tracing.clear_cache()
        for other in [*self._others.values()]:
            other.clear_cache()

    def _under(self, settings: tuple[object, ...]) -> JaxFunction[P, R]:
        """Returns the `JaxFunction` of this function under other settings of JAX."""
        found = self._others.get(settings)
        if found is None:
            made = JaxFunction(self._function, self._rules, settings, **self._options)
            found = self._others.setdefault(settings, made)
        return found

    _not_an_array_hint = (
        f"{JitFunction._not_an_array_hint}; where a model holds functions beside arrays (Equinox), "
        "pass the arrays alone: arrays, rest = equinox.partition(model, equinox.is_array)"
    )

    _may_be_disabled = False  # operation by operation, it would run on JAX's backend

    def _make_rerun(self, bound: FlatCall, keep: object = None) -> Rerun | None:
        return None  # finds the operation that made a NaN in the module

    def _flatten(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], read: Sequence[Any] = ()
    ) -> FlatCall:
        bound = self._rules.bind(args, kwargs, read)
        if adopt_classes(bound.leaves):
            bound = self._rules.bind(args, kwargs)
        refuse_jax_values(
            bound.leaves,
            lambda i: f"argument {self._rules.names(bound)[i]} of {self._rules.title!r}",
        )
        wide: frozenset[int] = frozenset()
        if canonical_dtype(_FLOAT64, True) == _FLOAT64:
            wide = frozenset(i for i, x in enumerate(bound.leaves) if _is_number(x))
        call = bound.leaves, bound.structure, bound.statics, bound.nodes
        return JaxBound(*call, platform=self._platform(bound), wide=wide)

    def _platform(self, bound: FlatCall) -> str:
        """Returns JAX's name for the platform of a call: the device's platform, or the default."""
        device = self._where()
        shardings = [
            x.sharding
            for x in bound.leaves
            if getattr(x, "committed", True) and _has_concrete_devices(x)
        ]
        if device is None and shardings:
            device = shardings[0].devices[0]
        return _jax_platform((device or default_device()).client)

    def _widen(self, bound: FlatCall, types: Sequence[TracedType]) -> Sequence[TracedType]:
        assert isinstance(bound, JaxBound)
        return [
            (kind[0], canonical_dtype(kind[1], True), *kind[2:]) if i in bound.wide else kind
            for i, kind in enumerate(types)
        ]

    def _donated(self, bound: FlatCall, types: Sequence[TracedType]) -> frozenset[int]:
        assert isinstance(bound, JaxBound)
        args, kwargs = bound.rebuild(describe_type(*each[:3]) for each in types)
        flags = self._tracing.donated(args, kwargs, bound.platform)
        own = super()._donated(bound, types)
        if flags is None:
            return own
        args, kwargs = bound.rebuild(range(len(types)))
        order = self._tracing.dynamic(args, kwargs)
        return own.union(i for i, flag in zip(order, flags, strict=True) if flag)

    def _make_flat(self, bound: FlatCall) -> Callable[..., Any]:
        assert isinstance(bound, JaxBound)

        def call(*leaves: Tracer) -> Any:
            args, kwargs = bound.rebuild(leaves)
            module = self._tracing.lower(args, kwargs, bound.platform)
            dynamic = self._tracing.dynamic(args, kwargs)
            trace, operands = active_trace(), [*map(self._narrow, dynamic)]
            division, marked = module.division, False

            def claim_of(operation: ir.Operation) -> Claim | None:
                nonlocal marked
                if division is None or not names_mesh(operation):
                    return None
                marked = True
                return self._claim(division, operation.location)

            values = inline_main(trace, module.code, operands, self._rules.title, claim_of)
            if division is not None and not marked:
                trace.claims.add(self._claim(division))
            results = [
                _restore(value, kind).in_memory(memory)
                for value, kind, memory in zip(
                    values, module.results, module.memory_kinds, strict=True
                )
            ]
            out = jax.tree_util.tree_unflatten(module.out_tree, results)
            adopt_classes(out)
            if division is not None:
                named = [*zip(dynamic, division.arguments, strict=True)]
                named += zip(results, division.results, strict=True)
                self._ask(trace, division, named, leaves, pytrees.leaves(out))
            return out

        return call

    def _claim(self, division: InlinedMeshes, location: ir.Location | None = None) -> Claim:
        """Returns the device claim of a program over a mesh, or of its operation at a location."""
        mesh, title = _mesh_of(division), self._rules.title
        axes = ", ".join(f"{name!r}: {size}" for name, size in division.axes.items())
        if self._device is not None:
            raise ArgumentError(
                f"the mesh ({axes}) of {title!r} is over {mesh.size} devices, and from_jax was "
                f"told {self._device!r}; give backend= instead, or neither"
            )
        found = file_and_line(location) if location else None
        where = ", named at {}:{},".format(*found) if found else ""
        return Claim((), lambda: f"the mesh ({axes}){where} of {title!r}", mesh=mesh)

    def _ask(
        self,
        trace: Trace,
        division: InlinedMeshes,
        named: Sequence[tuple[Tracer, Dimensions | None]],
        leaves: Sequence[Tracer],
        results: Sequence[Tracer],
    ) -> None:
        """Records in a trace the shardings of arguments and results of a program over a mesh."""
        mesh = _mesh_of(division)
        known = {
            id(tracer): NamedSharding(mesh, PartitionSpec(*dimensions[: tracer.ndim]))
            for tracer, dimensions in named
            if dimensions is not None
        }
        trace.asked = AskedShardings(
            tuple(known.get(id(x)) for x in leaves),
            tuple(known.get(id(x)) for x in results),
            from_program=True,
        )

    def _narrow(self, x: Tracer) -> Tracer:
        """Returns an argument in JAX's dtype for it; for an array of keys, the keys' words."""
        if is_key(x):
            return words_of(x)
        dtype = canonical_dtype(x.dtype, x.weak)
        if dtype.itemsize >= x.dtype.itemsize:
            return convert(x, dtype)
        named = x.origin or f"an argument of {self._rules.title!r}"
        if not x.weak:
            warn_user(
                f"{named} is {x.dtype} and is narrowed to {dtype}, as JAX narrows it: "
                "jax_enable_x64 is off. Switch it on for 64 bits: "
                'jax.config.update("jax_enable_x64", True)'
            )
        elif x.dtype.kind == "i" and x.scalar is None and scalar_dtype(1) != x.dtype:
            raise IntegerOverflow(
                f"{named} is an integer that needs {x.dtype}, and JAX takes {dtype}: "
                'jax_enable_x64 is off. Switch it on: jax.config.update("jax_enable_x64", True)'
            )
        return convert(x, dtype)


def _restore(value: Tracer, kind: jax.ShapeDtypeStruct) -> Tracer:
    """Returns a result of JAX's program in its own type; there, keys are arrays of words."""
    if (dtype := KEY_DTYPES.get(kind.dtype.name)) is not None:
        return keys_of(value, dtype)
    return with_weakness(value, kind.weak_type)


def _mesh_of(division: InlinedMeshes) -> AbstractMesh:
    return AbstractMesh([*division.axes.values()], [*division.axes])


def _is_number(x: object) -> bool:
    """Whether a leaf is a Python scalar, or stands for one in a trace."""
    if type(x) is Tracer:
        return x.scalar is not None and (x.weak or type(x.scalar) is bool)
    return type(x) is not Array and python_scalar(x) is not None


def _has_concrete_devices(x: object) -> bool:
    if type(x) is Array:
        return True
    sharding = getattr(x, "sharding", None)
    return isinstance(sharding, Sharding) and not is_abstract(sharding)


def _jax_platform(client: Client) -> str:
    """Returns the platform that JAX lowers for.

    For ``cpu``, JAX lowers to LAPACK calls that only jaxlib's client has, and ``gpu`` stands for
    several platforms. So other backends of these platforms have the name of their plugin: JAX uses
    its portable lowerings for unknown names.
    """
    if client.platform not in ("cpu", "gpu"):
        return client.platform
    known = process_backends()
    names = [name for name in known.started_names if known.get(name) is client]
    return names[0] if names else client.platform
