"""A pytest plugin (``-p in_jax_place``): ``import jax`` imports plugrt's names instead.

JAX's own test files run with it unchanged (``tools/test_jax.py``). Each name imported from JAX is
one of plugrt's, a helper of this folder (`jax_test_helpers`), or `Missing`: a test that uses a
missing name fails with `NotInPlugrt` and the name.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, NoReturn

import ml_dtypes
import numpy as np
import optree
import pytest
from jaxlib import xla_client

import plugrt
from plugrt import array_api, errors, lax, layout, sharding, tree
from plugrt.execution.arrays.aval import intern_aval
from plugrt.execution.shardings import mesh_context
from plugrt.execution.shardings.named_sharding import explicit_part
from plugrt.interface.device import Device
from plugrt.native.known_dtypes import KEY_DTYPES, KeyDtype, extended, is_key_dtype, prng_key
from plugrt.sharding import PartitionSpec
from plugrt.tracing.promotion import itemsize_bits
from plugrt.tracing.tracer import Tracer
from plugrt.transforms import stages

RUNNING: list[str] = []
"""The running test; None while test files are imported."""


class NotInPlugrt(NotImplementedError):
    """A test uses a name of JAX's that plugrt does not have."""


class Missing:
    """Represents a name that plugrt does not have; its use in a test raises `NotInPlugrt`.

    While a test file is imported, each use returns another `Missing`.
    """

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def _use(self, how: str = "") -> Any:
        if RUNNING:
            raise NotInPlugrt(self.name)
        return Missing(self.name + how)

    def __repr__(self) -> str:
        return f"<{self.name}: not in plugrt>"

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return self.name
        if name == "dtype":  # NumPy reads this attribute
            return self._use(".dtype")
        if name.startswith("__") and name != "__members__":
            raise AttributeError(name)
        return Missing(f"{self.name}.{name}")

    def __call__(self, *args: Any, **_: Any) -> Any:
        if not RUNNING and len(args) == 1 and getattr(args[0], "__name__", "").startswith("test"):
            return self._fail_test(args[0])
        return self._use("()")

    def _fail_test(self, test: Callable[..., Any]) -> Callable[..., NoReturn]:
        def fails(*_: Any, **__: Any) -> NoReturn:
            raise NotInPlugrt(self.name)

        fails.__name__ = test.__name__
        return fails

    def __setattr__(self, name: str, _: object) -> None:
        self._use(name)

    def __getitem__(self, _: object) -> Any:
        return self._use("[]")

    def __setitem__(self, _: object, __: object) -> None:
        self._use()

    def __iter__(self) -> Iterator[Any]:
        return iter([self._use("[]")])

    def __bool__(self) -> bool:
        self._use()
        return False

    def __enter__(self) -> Any:
        raise NotInPlugrt(self.name)

    def __exit__(self, *_: object) -> None: ...

    def __instancecheck__(self, _: object) -> bool:
        self._use()
        return False

    def __mro_entries__(self, _: object) -> tuple[type, ...]:
        return (object,)

    def __or__(self, _: object) -> Any:
        return self

    __ror__ = __or__
    __lt__ = __gt__ = __le__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __or__
    __mul__ = __rmul__ = __floordiv__ = __or__

    def __index__(self) -> int:
        self._use()
        return 0


class Module(ModuleType):
    """A module of JAX's, with the names of `NAMES`; any other is `Missing`."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        if full in MODULES:
            return importlib.import_module(full)
        return Missing(full)


class Finder(MetaPathFinder, Loader):
    """Finds every module below ``jax``."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Returns the specification of a module of JAX's."""
        return ModuleSpec(name, self, is_package=True) if f"{name}.".startswith("jax.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Returns the module, empty."""
        return Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Puts the names into the module."""
        vars(module).update(NAMES.get(module.__name__, {}))


class Flag:
    """A setting in the form of ``jax._src.config``: ``value``, and a context that sets it.

    A setting that plugrt does not have keeps its value in ``FIXED``, and accepts only that value.
    """

    FIXED: ClassVar[dict[str, Any]] = {
        "use_shardy_partitioner": True,
        "use_simplified_jaxpr_constants": False,
        "threefry_partitionable": True,
        "enable_custom_prng": False,
        "check_tracer_leaks": False,
        "remove_size_one_mesh_axis_from_type": False,
        "numpy_rank_promotion": "raise",
        "numpy_dtype_promotion": "strict",
        "enable_checks": False,
        "debug_key_reuse": False,
        "legacy_prng_key": "allow",
        "use_direct_linearize": True,
        "no_execution": False,
        "pmap_shmap_merge": True,
        "no_tracing": False,
        "default_prng_impl": "threefry2x32",
    }

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def value(self) -> Any:
        """The current value."""
        own = self.name not in self.FIXED
        return getattr(plugrt.config, self.name) if own else self.FIXED[self.name]

    def __call__(self, value: Any = True) -> Any:
        if self.name in self.FIXED:
            if value != self.value:
                return Missing(f"jax._src.config.{self.name}")
            return Unchanged()
        if self.name not in dir(plugrt.config):
            return Missing(f"jax._src.config.{self.name}")
        return _set(**{self.name: value})

    def get_global(self) -> Any:
        """Returns the value in other threads, which is the same."""
        return self.value


@contextlib.contextmanager
def _set(**values: Any) -> Iterator[None]:
    with plugrt.config.override(**values):
        yield


class Unchanged(contextlib.ContextDecorator):
    """A setting that already has the requested value."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class Config(Module):
    """``jax._src.config`` and ``jax.config``."""

    EffortLevel = IntEnum("EffortLevel", {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in Flag.FIXED or name in dir(plugrt.config):
            return Flag(name)
        return Missing(f"jax._src.config.{name}")

    def update(self, name: str, value: Any) -> None:
        """Sets a setting for all threads."""
        if name.removeprefix("jax_") in Flag.FIXED:
            with Flag(name.removeprefix("jax_"))(value):
                return
        try:
            plugrt.config.update(name, value)
        except errors.UnknownSetting:
            raise NotInPlugrt(f"jax.config.{name}") from None

    def parse_flags_with_absl(self) -> None:
        """Does nothing: the tests' flags are JAX's."""


class PublicConfig(Config):
    """``jax.config``, whose attributes are values."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name.removeprefix("jax_"))
        return found.value if isinstance(found, Flag) else found


def _public(module: Any) -> dict[str, Any]:
    names = {*dir(module), *getattr(module, "__all__", ())}  # some are imported at their first use
    return {name: getattr(module, name) for name in sorted(names) if not name.startswith("_")}


def _issubdtype(dtype: Any, kind: Any) -> bool:
    """Returns NumPy's answer, also for dtypes of keys and their scalar types."""
    a, b = (x.type if is_key_dtype(x) else x for x in (dtype, kind))
    return bool(np.issubdtype(a, b))


def _numpy_names() -> dict[str, Any]:
    """Returns plugrt's functions for ``jax.numpy``: those of the array API under NumPy's names."""
    names = _public(array_api)
    for new, old in (
        ("concatenate", "concat"), ("absolute", "abs"), ("arcsin", "asin"), ("arccos", "acos"),
        ("arctan", "atan"), ("arctan2", "atan2"), ("cumprod", "cumulative_prod"),
        ("power", "pow"), ("invert", "bitwise_invert"),
        ("true_divide", "divide"), ("amax", "max"), ("amin", "min"),
    ):  # fmt: skip
        names.setdefault(new, names[old])
    for name in (
        "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
        "uint32", "uint64", "complex64", "complex128", "bool_", "floating", "integer", "inexact",
        "generic",
    ):  # fmt: skip
        names[name] = getattr(np, name)
    for name in ("bfloat16", "int4", "uint4", "int2", "uint2", *_public(ml_dtypes)):
        if isinstance(kind := getattr(ml_dtypes, name, None), type):
            names[name] = kind
    # NumPy's functions, which plugrt runs on its arrays.
    names["cumsum"] = np.cumsum
    names["linalg"] = SimpleNamespace(**_public(array_api.linalg), norm=np.linalg.norm)
    names["array"] = _array
    names["tile"] = lambda A, reps: array_api.tile(A, reps if np.ndim(reps) else (reps,))
    names["copy"] = lambda x: array_api.asarray(x, copy=True)
    names.update(
        ndarray=plugrt.Array, bool=np.bool_, float_=np.float32, int_=np.int32, dtype=np.dtype,
        issubdtype=_issubdtype, promote_types=array_api.result_type, newaxis=None,
        shape=np.shape, size=np.size, ndim=np.ndim,
    )  # fmt: skip
    return names


def _array(
    value: Any,
    dtype: Any = None,
    copy: bool = True,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Makes an array of any object, including arrays in lists."""
    leaves = optree.tree_leaves(value)
    if isinstance(value, list | tuple) and any(hasattr(leaf, "sharding") for leaf in leaves):
        return array_api.stack([_array(part, dtype) for part in value])
    return array_api.asarray(
        value, dtype=dtype, copy=copy or None, device=device, out_sharding=out_sharding
    )


def _errors() -> dict[str, Any]:
    return {
        "UnexpectedTracerError": errors.LeakedTracer,
        "TracerBoolConversionError": errors.ConcretizationError,
        "TracerIntegerConversionError": errors.ConcretizationError,
        "TracerArrayConversionError": errors.ConcretizationError,
        "ConcretizationTypeError": errors.ConcretizationError,
        "NonConcreteBooleanIndexError": errors.DataDependentShape,
        "JaxRuntimeError": errors.PjrtError,
        "ShardingTypeError": errors.ShardingTypeError,
        "KeyReuseError": Missing("jax.errors.KeyReuseError"),
    }


def jit(fun: Any = None, **options: Any) -> Any:
    """``jax.jit``; without a function it returns a decorator."""
    return plugrt.jit(**options) if fun is None else plugrt.jit(fun, **options)


def no_jit(fun: Any, **_: Any) -> Any:
    """Returns the function: stands for ``jit`` in tests of both."""
    return fun


jit._name, no_jit._name = "jit", "noop"  # type: ignore[attr-defined]


def _eval_shape(function: Any, *args: Any, **kwargs: Any) -> Any:
    jitted = function if isinstance(function, plugrt.transforms.jit.JitFunction) else jit(function)
    return jitted.eval_shape(*args, **kwargs)


def _get_topology(name: str = "", platform: str | None = None, **options: Any) -> Any:
    try:
        return plugrt.topology(platform or plugrt.default_backend(), name, **options)
    except errors.Unimplemented:
        raise NotImplementedError("topology not implemented") from None  # JAX's tests read it


def _typeof(x: Any) -> Any:
    return x.aval


class _ArrayType(type):
    """The type of `ArrayImpl`: plugrt's arrays are its instances."""

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, plugrt.Array)

    def __getattr__(cls, name: str) -> Any:
        return getattr(plugrt.Array, name)


class ArrayImpl(metaclass=_ArrayType):
    """``jax._src.array.ArrayImpl``: calling it makes an array from its parts."""

    def __new__(cls, aval: Any, placed: Any, arrays: Any, committed: bool) -> Any:
        """Returns plugrt's array, committed."""
        if not committed:
            raise NotInPlugrt("jax._src.array.ArrayImpl(committed=False)")
        return plugrt.make_array_from_single_device_arrays(aval.shape, placed, arrays)


class _ThreadResources:
    """``jax._src.mesh.thread_resources``: the mesh of ``with mesh:``."""

    @property
    def env(self) -> Any:
        """The current resources."""
        mesh = mesh_context.current().specs
        return SimpleNamespace(physical_mesh=mesh or sharding.Mesh(None, ()))


def _refuse_jaxpr(_: Any) -> NoReturn:
    raise NotInPlugrt("jax.core.jaxpr")


class ShapedArray:
    """The type of an array; equal to plugrt's types of the same shape and dtype."""

    def __init__(
        self, shape: Any, dtype: Any, weak_type: bool = False, *, sharding: Any = None, **_: Any
    ) -> None:
        self.shape, self.dtype, self.weak_type = tuple(shape), np.dtype(dtype), weak_type
        self.size, self.ndim = int(np.prod(self.shape)), len(self.shape)
        if sharding is not None:
            sharding.check_shape(self.shape)
            self.sharding = explicit_part(sharding.mesh, sharding.spec, self.ndim)

    def __eq__(self, other: object) -> bool:
        weak = getattr(other, "weak_type", getattr(other, "weak", False))
        return (self.shape, self.dtype, self.weak_type) == (
            getattr(other, "shape", None), getattr(other, "dtype", None), weak,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def update(self, **changes: Any) -> ShapedArray:
        """Returns the type with changed parameters."""
        same = {"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type}
        return ShapedArray(**{**same, **changes})

    def str_short(self) -> str:
        """Returns its short form, such as ``f32[2,3]``; over axes of a mesh, plugrt's text."""
        if (own := getattr(self, "sharding", None)) is not None:
            return repr(intern_aval(self.shape, self.dtype, own, False, False))
        kind = self.dtype.kind.replace("b", "bool")
        bits = "" if kind == "bool" else self.dtype.itemsize * 8
        return f"{kind}{bits}[{','.join(map(str, self.shape))}]"


def _make_single_device_sharding(device: Any, **options: Any) -> Any:
    """Returns plugrt's sharding, or jaxlib's for a jaxlib device, as jaxlib itself requests."""
    if isinstance(device, xla_client.Device):
        return xla_client._xla.SingleDeviceSharding(device)
    return sharding.make_single_device_sharding(device, **options)


def _add_private_names() -> None:
    """Adds private names of JAX for public attributes of arrays and shardings."""
    stages.Traced.jaxpr = property(_refuse_jaxpr)  # type: ignore[attr-defined]
    # JAX's tests of memory skip where it is None, as on JAX's CPU.
    Device.memory_stats = lambda x: None  # type: ignore[method-assign, assignment]
    array: Any = plugrt.Array
    array._committed = property(lambda x: x.committed)
    array._value = property(np.asarray)
    array._base_array = property(plugrt.random.key_data)
    array._impl = property(lambda x: GENERATORS[x.dtype.impl])
    array._arrays = property(lambda x: [shard.data for shard in x.addressable_shards])
    sharding.NamedSharding.check_compatible_aval = sharding.NamedSharding.check_shape
    sharding.Sharding._device_assignment = property(  # type: ignore[attr-defined]
        lambda x: tuple(x.devices)
    )


class _KeyArrayType(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, plugrt.Array | Tracer) and is_key_dtype(x.dtype)


class PRNGKeyArray(metaclass=_KeyArrayType):
    """JAX's class of arrays of keys, which are ordinary arrays in plugrt."""


GENERATORS = {
    x.impl: SimpleNamespace(key_shape=(x.words,), name=x.impl) for x in KEY_DTYPES.values()
}
"""The generators of random numbers, with JAX's attribute that tests read."""


def _vmap(function: Any, *args: Any, **options: Any) -> Any:
    """Maps over seeds where random_test makes keys; tests with any other ``vmap`` do not apply."""
    if RUNNING and sys._getframe(1).f_code.co_name == "make_keys":
        return lambda seeds: array_api.stack([function(seed) for seed in seeds])
    return Missing("jax.vmap")(function, *args, **options)


def _tree_names() -> dict[str, Any]:
    names = {f"tree_{name}": value for name, value in _public(tree).items()}
    return {
        **names,
        "register_pytree_node": tree.register_node,
        "register_pytree_node_class": _register_class,
        "register_dataclass": tree.register_dataclass,
        "PyTreeDef": plugrt.PyTreeSpec,
        "Partial": Missing("jax.tree_util.Partial"),
    }


def _register_class(cls: Any) -> Any:
    tree.register_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def _split_list(items: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    parts, rest = [], list(items)
    for size in sizes:
        parts.append(rest[:size])
        rest = rest[size:]
    return [*parts, rest]


def _partition_list(chosen: Sequence[bool], items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Returns the items that are not chosen, and the chosen ones."""
    pairs = _safe_zip(chosen, items)
    return [x for one, x in pairs if not one], [x for one, x in pairs if one]


def _merge_lists(chosen: Sequence[bool], first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Reverses `_partition_list`."""
    parts = iter(first), iter(second)
    return [next(parts[bool(one)]) for one in chosen]


def _unzip2(pairs: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    pairs = list(pairs)
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


def _safe_zip(*sequences: Sequence[Any]) -> list[Any]:
    return list(zip(*map(list, sequences), strict=True))


def _curry(function: Any) -> Any:
    return lambda *args, **kwargs: partial(function, *args, **kwargs)


def _names() -> dict[str, dict[str, Any]]:
    """Returns the names of each JAX module that plugrt has an equivalent of."""
    import jax_test_helpers as helpers

    top = {k: v for k, v in _public(plugrt).items() if not isinstance(v, ModuleType)}
    top.pop("config")
    top |= {
        "jit": jit,
        "P": PartitionSpec,
        "NamedSharding": sharding.NamedSharding,
        "set_mesh": sharding.use_mesh,
        "eval_shape": _eval_shape,
        "typeof": _typeof,
        "reshard": sharding.reshard,
        "float0": Missing("jax.float0"),
        "vmap": _vmap,
        "named_scope": lambda _: contextlib.nullcontext(),
        "enable_x64": Flag("enable_x64"),
        "default_matmul_precision": Flag("default_matmul_precision"),
        **{name: Flag(name) for name in Flag.FIXED},
        "__version__": "0.10.2",
    }
    of_sharding = {
        **_public(sharding),
        "P": PartitionSpec,
        "PartitionSpec": PartitionSpec,
        "set_mesh": sharding.use_mesh,
        "use_abstract_mesh": sharding.use_abstract_mesh,
        "IndivisibleError": errors.ShapeError,
        "DuplicateSpecError": errors.InvalidArgument,
    }
    arrays = {
        "ArrayImpl": ArrayImpl,
        **{n: v for n, v in top.items() if n.startswith("make_array_from")},
        "make_array_from_callback": plugrt.make_array_from_callback,
    }
    maps = {"shard_map": plugrt.shard_map}
    layouts = _public(layout)
    callbacks = {"io_callback": plugrt.io_callback, "pure_callback": plugrt.pure_callback}
    pjit = {"pjit": plugrt.pjit}
    utilities = {
        "safe_zip": _safe_zip,
        "safe_map": lambda f, *args: [f(*each) for each in _safe_zip(*args)],
        "unzip2": _unzip2,
        "split_list": _split_list,
        "curry": _curry,
        "partition_list": _partition_list,
        "merge_lists": _merge_lists,
        "clear_all_caches": plugrt.clear_caches,
    }
    dtypes = {
        "bfloat16": ml_dtypes.bfloat16,
        "issubdtype": _issubdtype,
        "canonicalize_dtype": helpers.canonical,
        "itemsize_bits": lambda dtype: itemsize_bits(np.dtype(dtype)),
        "default_int_dtype": lambda: np.dtype("int32"),
        "default_float_dtype": lambda: np.dtype("float32"),
        "result_type": array_api.result_type,
        **{n: v for n, v in _numpy_names().items() if isinstance(v, type)},
        "prng_key": prng_key,
        "extended": extended,
    }
    multihost = {
        name: getattr(plugrt, name)
        for name in (
            *("process_allgather", "broadcast_one_to_all", "assert_equal", "sync_global_devices"),
            *("host_local_array_to_global_array", "global_array_to_host_local_array"),
        )
    }
    debug = _public(plugrt.debug)
    of_core = {"Tracer": Tracer, "ShapedArray": ShapedArray, "Token": type(lax.create_token())}
    return {
        "jax": {**top},
        "jax._src.api": top,
        "jax._src.pjit": pjit,
        "jax.experimental.pjit": pjit,
        "jax.lax": _public(lax),
        "jax.numpy": _numpy_names(),
        "jax.numpy.linalg": {**_public(array_api.linalg), "norm": np.linalg.norm},
        "jax.numpy.fft": _public(array_api.fft),
        "jax.random": _public(plugrt.random),
        "jax.tree": _public(tree),
        "jax.tree_util": _tree_names(),
        "jax._src.tree_util": _tree_names(),
        "jax.sharding": of_sharding,
        "jax._src.sharding": of_sharding,
        "jax._src.sharding_impls": {
            **of_sharding,
            "make_single_device_sharding": _make_single_device_sharding,
            "UNSPECIFIED": None,  # the meaning of None in plugrt's jit and in JAX's
        },
        "jax.stages": {name: getattr(stages, name) for name in ("Compiled", "Lowered", "Traced")},
        "jax._src.named_sharding": of_sharding,
        "jax._src.mesh": {
            **of_sharding,
            "empty_concrete_mesh": sharding.Mesh(None, ()),
            "empty_abstract_mesh": sharding.AbstractMesh((), ()),
            "thread_resources": _ThreadResources(),
            "EMPTY_ENV": SimpleNamespace(physical_mesh=sharding.Mesh(None, ())),
        },
        "jax._src.array": arrays,
        "jax._src.shard_map": maps,
        "jax.experimental.shard_map": maps,
        "jax.experimental": callbacks,
        "jax.experimental.layout": layouts,
        "jax._src.layout": layouts,
        "jax.experimental.multihost_utils": multihost,
        "jax.experimental.serialize_executable": _public(plugrt.serialize_executable),
        "jax.experimental.topologies": {"get_topology_desc": _get_topology},
        "jax.debug": debug,
        "jax.errors": _errors(),
        "jax._src.core": {**_errors(), **of_core},
        "jax.core": of_core,
        "jax._src.util": utilities,
        "jax._src.internal_test_util.lax_test_util": {"all_dtypes": helpers.dtypes.all},
        "jax.dtypes": dtypes,
        "jax._src.dtypes": dtypes,
        "jax._src.lib": {"xla_client": xla_client, "jaxlib_extension_version": 1000},
        "jax._src.test_util": _public(helpers),
        "jax._src.random.prng": {
            "prngs": GENERATORS,
            "PRNGKeyArray": PRNGKeyArray,
            "KeyTy": KeyDtype,
            "random_unwrap": plugrt.random.key_data,
        },
        "jax._src.compilation_cache": {"is_persistent_cache_enabled": lambda: False},
        "jax._src.xla_bridge": {n: v for n, v in top.items() if "device" in n or "backend" in n},
        "jax._src.dispatch": {
            "runtime_tokens": SimpleNamespace(clear=lambda: None),
            "DispatchException": Missing("jax._src.dispatch"),
        },
        # Caches of JAX that tests clear first; plugrt has none of them.
        "jax._src.lax.control_flow.common": {
            name: SimpleNamespace(cache_clear=lambda: None)
            for name in ("_dedup_consts", "_pad_constvars")
        },
        "jax.nn": {"relu": lambda x: array_api.maximum(x, 0), "sigmoid": lax.logistic},
        "jax.ffi": _public(plugrt.ffi),
        "jax.profiler": _public(plugrt.profiler),
        "jax.monitoring": _public(plugrt.monitoring),
        "jax.export": _public(plugrt.export),
    }


NAMES: dict[str, dict[str, Any]] = {}
MODULES: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    """Replaces JAX by plugrt. JAX's tests turn warnings into errors; JAX narrows without one."""
    config.addinivalue_line("filterwarnings", "ignore:64-bit data are narrowed")
    # The warning about pmap within jit: JAX does not warn. It is about speed and changes no result.
    config.addinivalue_line("filterwarnings", "ignore:the jitted function .* has pmap of")
    imported = sorted(name for name in sys.modules if f"{name}.".startswith("jax."))
    if imported:
        raise pytest.UsageError(f"JAX is imported already: {imported[0]}")
    sys.meta_path.insert(0, Finder())
    NAMES.update(_names())
    _add_private_names()
    for name in NAMES:
        MODULES.update(".".join(name.split(".")[: i + 1]) for i in range(name.count(".") + 1))
    for name, kind in (("jax._src.config", Config), ("jax.config", PublicConfig)):
        sys.modules[name] = kind(name)
        MODULES.add(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Records the running test."""
    RUNNING.append(item.nodeid)
    try:
        return (yield)
    finally:
        RUNNING.pop()
