"""Replaces ``jax._src.test_util`` for JAX's tests; see `in_jax_place`."""

# ruff: noqa: PT009, PT027 # the base class of JAX's tests is unittest's
from __future__ import annotations

import contextlib
import itertools
import math
import random
import unittest
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import in_jax_place
import ml_dtypes
import numpy as np
from absl.testing import parameterized

import plugrt
from plugrt import sharding, tree

NUM_GENERATED_CASES = SimpleNamespace(value=10)
TEST_WITH_PERSISTENT_COMPILATION_CACHE = SimpleNamespace(value=False)
TEST_NUM_THREADS = SimpleNamespace(value=0)
JIT_IMPLEMENTATION = (in_jax_place.jit, in_jax_place.no_jit)
_NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
_TOLERANCES = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6}


def canonical(dtype: Any) -> np.dtype[Any]:
    """Returns a dtype without 64 bits, unless these are enabled."""
    found = np.dtype(dtype)
    wide = bool(plugrt.config.enable_x64)
    return found if wide else np.dtype(_NARROW.get(found.name, found))


def numpy_version() -> tuple[int, ...]:
    """Returns NumPy's version."""
    return tuple(map(int, np.__version__.split(".")[:3]))


def device_under_test() -> str:
    """Returns the platform's name."""
    return "cpu"


def test_device_matches(platforms: Iterable[str]) -> bool:
    """Whether ``cpu`` is among the platforms."""
    return "cpu" in platforms


test_device_matches.__test__ = False  # type: ignore[attr-defined]


def is_device_tpu(*_: object, **__: object) -> bool:
    """Returns False: no platform is a TPU."""
    return False


is_device_rocm = is_device_cuda = is_device_tpu_at_least = is_cloud_tpu = is_device_tpu


def is_cloud_tpu_at_least(*_: object) -> bool:
    """Returns True, as JAX does without a TPU."""
    return True


def device_supports_buffer_donation() -> Any:
    """Marks a test of donation."""
    return lambda test: test


def request_cpu_devices(count: int) -> None:
    """Requests that many CPU devices; `tools/test_jax.py` sets 8."""


def _filtered(runs: bool, reason: str) -> Callable[[Any], Any]:
    return lambda test: test if runs else unittest.skip(reason)(test)


def run_on_devices(*platforms: str, skip_reason: str | None = None) -> Any:
    """Marks a test that runs on some platforms only."""
    return _filtered("cpu" in platforms, skip_reason or f"runs on {platforms}")


def skip_on_devices(*platforms: str, skip_reason: str | None = None) -> Any:
    """Marks a test that does not run on some platforms."""
    return _filtered("cpu" not in platforms, skip_reason or f"does not run on {platforms}")


def skip_on_flag(name: str, value: object) -> Any:
    """Marks a test that does not run if a setting of JAX has a value."""
    flag = in_jax_place.Flag(name.removeprefix("jax_"))
    known = flag.name in in_jax_place.Flag.FIXED or flag.name in dir(plugrt.config)
    return _filtered(not (known and flag.value == value), f"{name} is {value}")


def thread_unsafe_test(**_: object) -> Any:
    """Marks a test that runs alone; here all tests do."""
    return lambda test: test


thread_unsafe_test_class = thread_unsafe_test


def pytest_mark_if_available(name: str) -> Any:
    """Marks a test with a mark of JAX's that nothing selects by."""
    return lambda test: test


def with_config(**values: Any) -> Any:
    """Marks a class whose tests run with settings."""

    def mark(cls: Any) -> Any:
        cls.settings = {**getattr(cls, "settings", {}), **values}
        return cls

    return mark


def create_mesh(
    shape: Sequence[int], names: Any, iota_order: bool = False, axis_types: Any = None
) -> Any:
    """Returns a mesh of the first devices; skips the test if there are too few."""
    size = math.prod(shape)
    if plugrt.device_count() < size:
        raise unittest.SkipTest(f"needs {size} devices")
    if not iota_order:
        return plugrt.make_mesh(shape, names, axis_types)
    devices = np.array(plugrt.devices()[:size], dtype=object).reshape(shape)
    return sharding.Mesh(devices, names, axis_types)


def with_explicit_mesh(
    shape: Sequence[int], names: Any, axis_types: Any = None, iota_order: bool = False
) -> Any:
    """Marks a test that runs with a mesh with Explicit axes, passed as its last parameter."""
    types = axis_types or (sharding.AxisType.Explicit,) * len(names)

    def mark(test: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            mesh = create_mesh(shape, names, iota_order, types)
            with sharding.use_mesh(mesh):
                return test(*args, **kwargs, mesh=mesh)

        run.__name__ = test.__name__
        return run

    return mark


@contextlib.contextmanager
def with_mesh(named_shape: Sequence[tuple[str, int]]) -> Iterator[None]:
    """Sets a mesh for a test."""
    names, sizes = [name for name, _ in named_shape], [size for _, size in named_shape]
    with create_mesh(sizes, names, iota_order=True):
        yield


def with_mesh_from_kwargs(test: Any) -> Any:
    """Sets the mesh of a test's parameter."""
    return lambda *args, **kwargs: with_mesh(kwargs["mesh"])(test)(*args, **kwargs)


def sample_product(*groups: Iterable[Mapping[str, Any]], **values: Iterable[Any]) -> Any:
    """Parametrises a test with some of the products of its cases."""
    choices = [*map(list, groups), *([{k: v} for v in vs] for k, vs in values.items())]
    cases = [
        {key: value for part in parts for key, value in part.items()}
        for parts in itertools.product(*choices)
    ]
    if len(cases) > NUM_GENERATED_CASES.value:
        cases = random.Random(0).sample(cases, NUM_GENERATED_CASES.value)
    return parameterized.parameters(*cases)


def parameterized_filterable(
    *, kwargs: Sequence[dict[str, Any]], testcase_name: Any = None, **_: Any
) -> Any:
    """Parametrises a test with named cases."""
    cases = []
    for case in kwargs:
        default = "_".join(f"{key}={case[key]}" for key in sorted(case))
        name = str(testcase_name(case) if testcase_name else case.get("testcase_name", default))
        clean = "".join(c if c.isalnum() or c in "_.=" else "_" for c in name)
        cases.append({**case, "testcase_name": clean})
    return parameterized.named_parameters(*cases)


def rand_default(rng: Any, scale: float = 3) -> Any:
    """Returns a function that makes random arrays."""
    return lambda shape, dtype: np.asarray(scale * rng.standard_normal(shape)).astype(dtype)


def check_eq(xs: Any, ys: Any, message: str = "") -> None:
    """Checks that two pytrees have equal numbers."""
    for x, y in zip(tree.leaves(xs), tree.leaves(ys), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y), message)


def named_cases_from_sampler(make: Callable[[Any], Iterable[dict[str, Any]]]) -> Any:
    """Returns the first distinct cases from a generator of random choices."""
    chance, cases = random.Random(42), {}
    for _ in range(10 * NUM_GENERATED_CASES.value):
        for case in make(lambda options: [chance.choice(list(options))]):
            cases.setdefault(case["testcase_name"], case)
    return [*cases.values()][: NUM_GENERATED_CASES.value]


def check_raises(function: Callable[[], Any], kind: type[Exception], _: str) -> None:
    """Checks the class of a function's error, without its message."""
    try:
        function()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} not raised")


def format_shape_dtype_string(shape: Sequence[int], dtype: Any) -> str:
    """Returns a dtype and a shape for a test's name."""
    return f"{np.dtype(dtype).name}[{','.join(map(str, shape))}]"


def _supported(given: Sequence[Any]) -> list[Any]:
    """Returns the dtypes without 64 bits."""
    return [one for one in given if canonical(one) == np.dtype(one)]


_FLOATS = [ml_dtypes.bfloat16, np.float16, np.float32]
_INTEGERS = [np.int8, np.int16, np.int32]
_UNSIGNED = [np.uint8, np.uint16, np.uint32]
dtypes = SimpleNamespace(
    all_floating=_FLOATS,
    floating=[np.float32],
    integer=[np.int32],
    all_integer=_INTEGERS,
    unsigned=[np.uint32],
    all_unsigned=_UNSIGNED,
    complex=[np.complex64],
    boolean=[np.bool_],
    custom_floats=[ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2],
    inexact=[np.float32, np.complex64],
    all_inexact=[*_FLOATS, np.complex64],
    numeric=[np.float32, np.int32, np.uint32, np.complex64],
    all=[*_FLOATS, *_INTEGERS, *_UNSIGNED, np.complex64, np.bool_],
    supported=_supported,
)
"""The dtypes of tests."""


def _compilations() -> Any:
    """Counts the programs that are compiled within the block."""
    return _Count("/jax/core/compile/backend_compile_duration")


class _Count:
    """Counts an event; calling it returns the number."""

    def __init__(self, event: str) -> None:
        self.event = event
        self.number = 0

    def __call__(self) -> int:
        return self.number

    def _note(self, event: str, *_: object, **__: object) -> None:
        self.number += event == self.event

    def __enter__(self) -> _Count:
        plugrt.monitoring.register_event_duration_secs_listener(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        plugrt.monitoring.unregister_event_duration_listener(self._note)


def count_jit_and_pmap_lowerings() -> Any:
    """Counts the modules that are lowered."""
    return _Count("/jax/core/compile/jaxpr_to_mlir_module_duration")


def count_jit_tracing_cache_miss() -> Any:
    """Counts the traces."""
    return _Count("/jax/core/compile/jaxpr_trace_duration")


count_jit_compilation_cache_miss = count_jit_and_pmap_compilations = _compilations


@contextlib.contextmanager
def assert_num_jit_and_pmap_compilations(times: int) -> Iterator[None]:
    """Checks the number of programs that are compiled within the block."""
    with _compilations() as counted:
        yield
    assert counted() == times, (counted(), times)


@contextlib.contextmanager
def ignore_warning(**how: Any) -> Iterator[None]:
    """Ignores warnings within the block."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", **how)
        yield


@contextlib.contextmanager
def capture_stdout() -> Iterator[Callable[[], str]]:
    """Captures the output that is printed within the block."""
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        yield text.getvalue


class JaxTestCase(parameterized.TestCase):
    """The base of JAX's tests. Messages are not compared, since plugrt's differ."""

    settings: ClassVar[dict[str, Any]] = {}

    def setUp(self) -> None:
        super().setUp()
        self._rng = np.random.RandomState(zlib.adler32(self._testMethodName.encode()))
        for name, value in self.settings.items():
            self.enterContext(in_jax_place.Flag(name.removeprefix("jax_"))(value))

    def rng(self) -> Any:
        """Returns the generator of random numbers."""
        return self._rng

    def assertRaisesRegex(self, expected: Any, regex: Any, *args: Any, **kwargs: Any) -> Any:
        """Checks the class of an exception, without its message."""
        return self.assertRaises(expected, *args, **kwargs)

    def assertWarnsRegex(self, expected: Any, regex: Any, *args: Any, **kwargs: Any) -> Any:
        """Checks the class of a warning, without its message."""
        return self.assertWarns(expected, *args, **kwargs)

    assertRaisesWithLiteralMatch = assertRaisesRegex

    def assertCacheMisses(
        self,
        function: Callable[[], Any],
        *,
        tracing: int | None = None,
        lowering: int | None = None,
        **_: int | None,
    ) -> None:
        """Checks the number of traces and lowerings of a call; plugrt lacks JAX's other caches."""
        with count_jit_tracing_cache_miss() as traces, count_jit_and_pmap_lowerings() as modules:
            function()
        for expected, counted in ((tracing, traces), (lowering, modules)):
            if expected is not None:
                self.assertEqual(expected, counted())

    @contextlib.contextmanager
    def assertNoWarnings(self) -> Iterator[None]:
        """Checks that no warning is raised within the block."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    def assertDtypesMatch(
        self, actual: Any, desired: Any, *, canonicalize_dtypes: bool = True
    ) -> None:
        """Checks that dtypes are the same but for 64 bits."""
        kind = canonical if canonicalize_dtypes else np.dtype
        self.assertEqual(kind(_dtype(actual)), kind(_dtype(desired)))

    def assertArraysEqual(
        self, actual: Any, desired: Any, *, check_dtypes: bool = True, err_msg: str = "", **_: Any
    ) -> None:
        """Checks that two arrays are the same."""
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(desired), err_msg)

    def assertArraysAllClose(self, actual: Any, desired: Any, **how: Any) -> None:
        """Checks that two arrays are about the same."""
        self.assertEqual(np.shape(actual), np.shape(desired))
        self.assertAllClose(actual, desired, **how)

    def assertAllClose(
        self,
        actual: Any,
        desired: Any,
        *,
        check_dtypes: bool = True,
        atol: Any = None,
        rtol: Any = None,
        canonicalize_dtypes: bool = True,
        err_msg: str = "",
    ) -> None:
        """Checks that arrays, or containers of arrays, are about the same."""
        again = {"check_dtypes": check_dtypes, "atol": atol, "rtol": rtol, "err_msg": err_msg}
        if isinstance(actual, dict):
            self.assertEqual(set(actual), set(desired))
            for key in actual:
                self.assertAllClose(actual[key], desired[key], **again)
        elif isinstance(actual, list | tuple):
            self.assertEqual(len(actual), len(desired))
            for one, other in zip(actual, desired, strict=True):
                self.assertAllClose(one, other, **again)
        elif actual is None:
            self.assertIsNone(desired)
        else:
            if check_dtypes:
                self.assertDtypesMatch(actual, desired, canonicalize_dtypes=canonicalize_dtypes)
            least = max(_tolerance(actual), _tolerance(desired))
            close = {"atol": _limit(atol, least), "rtol": _limit(rtol, least), "err_msg": err_msg}
            np.testing.assert_allclose(_plain(actual), _plain(desired), **close)

    def _CheckAgainstNumpy(
        self,
        expected: Any,
        function: Any,
        args_maker: Any,
        check_dtypes: bool = True,
        tol: Any = None,
        **_: Any,
    ) -> None:
        args = args_maker()
        close = {"check_dtypes": check_dtypes, "atol": tol, "rtol": tol}
        self.assertAllClose(function(*args), expected(*args), **close)

    def _CompileAndCheck(
        self,
        function: Any,
        args_maker: Any,
        *,
        check_dtypes: bool = True,
        atol: Any = None,
        rtol: Any = None,
        **_: Any,
    ) -> None:
        args = args_maker()
        close = {"check_dtypes": check_dtypes, "atol": atol, "rtol": rtol}
        self.assertAllClose(plugrt.jit(function)(*args), function(*args), **close)


class BufferDonationTestCase(JaxTestCase):
    """The base of tests of donation."""

    def assertDeleted(self, x: Any) -> None:
        """Checks that an array is deleted."""
        self.assertTrue(x.is_deleted())

    def assertNotDeleted(self, x: Any) -> None:
        """Checks that an array is not deleted."""
        self.assertFalse(x.is_deleted())


def _dtype(value: Any) -> np.dtype[Any]:
    return np.dtype(value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype)


def _tolerance(value: Any) -> float:
    return _TOLERANCES.get(canonical(_dtype(value)).name, 0.0)


def _limit(given: Any, least: float) -> float:
    if isinstance(given, Mapping):
        given = max(given.values())
    return least if given is None else float(given)


def _plain(value: Any) -> Any:
    found = np.asarray(value)
    narrow = found.dtype.name.startswith(("bfloat", "float8"))
    return found.astype(np.float32) if narrow else found


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return in_jax_place.Missing(f"jax._src.test_util.{name}")
