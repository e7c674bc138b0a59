"""Calls that type checkers must accept, each with the type of its result.

mypy and pyright read it (``test_type_checkers.py``); ``tests/cpu/typing`` runs it, with an
``assert_type`` that checks the value against the annotation.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import plugrt
from plugrt import Array, lax, random
from plugrt import array_api as xp
from plugrt.array_api.indexing import at as _at  # noqa: F401  # importable beside the stub
from plugrt.errors import PlugrtError
from plugrt.execution.launches.compiled import CompiledCall
from plugrt.interface import Client, CompileOptions, Device, OptionValue, Program
from plugrt.plugins import Availability, Plugin, Record
from plugrt.sharding import PmapSharding, Sharding, SingleDeviceSharding
from plugrt.typing import ArrayLike, Axes, DeviceLike, DTypeLike, Shape
from plugrt_sdk import Backend, BackendPlugin

x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
n = xp.asarray([3, 1, 2])
host = np.ones((2, 2), np.float32)
device = plugrt.devices()[0]


def creation() -> None:
    assert_type(xp.asarray([[1, 2], [3, 4]]), Array)
    assert_type(xp.asarray(host, dtype=xp.float32, device=device, copy=True), Array)
    assert_type(xp.asarray((x, [1.0, 2.0], range(2))[2]), Array)
    xp.asarray((x, x))
    xp.asarray(bytearray(b"ab"))
    xp.asarray(np.float32(1))
    xp.asarray(True)
    xp.asarray(array("f", [1.0]))
    xp.asarray(memoryview(b"ab"))
    xp.asarray(Celsius())
    xp.from_dlpack(host)
    assert_type(xp.zeros((2, 3)), Array)
    assert_type(xp.zeros(3, dtype="float32"), Array)
    assert_type(xp.ones([2, 3], dtype=np.int32, device=device), Array)
    assert_type(xp.full((2,), 7, dtype=float), Array)
    assert_type(xp.zeros_like(host), Array)
    assert_type(xp.full_like(x, 1.5), Array)
    assert_type(xp.arange(3), Array)
    assert_type(xp.arange(0.0, 1.0, 0.25, dtype=xp.bfloat16), Array)
    assert_type(xp.linspace(0, 1, 5, endpoint=False), Array)
    assert_type(xp.linspace(xp.sum(x), np.float32(3), 5), Array)
    assert_type(xp.eye(2, 3, k=1), Array)
    assert_type(xp.meshgrid(n, n, indexing="ij"), list[Array])
    assert_type(xp.from_dlpack(x), Array)
    assert_type(xp.tril(x, k=1), Array)


def elementwise() -> None:
    assert_type(xp.abs(x), Array)
    assert_type(xp.add(x, 1), Array)
    assert_type(xp.add(1.5, host), Array)
    assert_type(xp.where(x > 1, x, 0.0), Array)
    assert_type(xp.clip(x, 0, max=1), Array)
    assert_type(xp.logical_not(x > 1), Array)
    assert_type(xp.atan2(x, np.float32(2)), Array)
    assert_type(xp.isnan(x), Array)
    assert_type(xp.conj(1 + 2j), Array)


def reductions() -> None:
    assert_type(xp.sum(x), Array)
    assert_type(xp.sum(x, axis=0, keepdims=True), Array)
    assert_type(xp.prod(x, axis=(0, 1), dtype=xp.float32), Array)
    assert_type(xp.mean(host, axis=[0]), Array)
    assert_type(xp.std(x, correction=1), Array)
    assert_type(xp.max(True), Array)
    assert_type(xp.any(x > 0, axis=-1), Array)
    assert_type(xp.argmax(x, axis=1), Array)
    assert_type(xp.count_nonzero(x), Array)
    assert_type(xp.cumulative_sum(n, include_initial=True), Array)
    assert_type(xp.diff(n, n=2, prepend=n[:1]), Array)


def shapes() -> None:
    assert_type(xp.reshape(x, (4,)), Array)
    assert_type(xp.reshape(x, -1), Array)
    assert_type(xp.concat([x, host], axis=0), Array)
    assert_type(xp.stack((x, x), axis=-1), Array)
    assert_type(xp.unstack(x), tuple[Array, ...])
    assert_type(xp.broadcast_arrays(x, 1.0), list[Array])
    assert_type(xp.broadcast_to(1, (2, 2)), Array)
    assert_type(xp.expand_dims(x, axis=(0, -1)), Array)
    assert_type(xp.permute_dims(x, (1, 0)), Array)
    assert_type(xp.moveaxis(x, 0, -1), Array)
    assert_type(xp.roll(x, 1, axis=0), Array)
    assert_type(xp.repeat(n, 2), Array)
    assert_type(xp.repeat(n, [1, 2, 3]), Array)
    assert_type(xp.tile(x, (2, 1)), Array)
    assert_type(xp.take(x, n[:1], axis=1, mode="clip"), Array)


def searching_and_sets() -> None:
    assert_type(xp.sort(n, descending=True), Array)
    assert_type(xp.argsort(x, axis=0), Array)
    assert_type(xp.searchsorted(n, 2, side="right"), Array)
    assert_type(xp.nonzero(n), tuple[Array, ...])
    assert_type(xp.unique_values(n), Array)
    assert_type(xp.unique_counts(n).counts, Array)
    assert_type(xp.unique_all(n).inverse_indices, Array)


def products() -> None:
    assert_type(xp.matmul(x, host), Array)
    assert_type(xp.tensordot(x, x, axes=((0,), (1,))), Array)
    assert_type(xp.vecdot(x, x, axis=-1), Array)


def dtypes() -> None:
    assert_type(xp.astype(x, xp.bfloat16), Array)
    assert_type(xp.astype(host, "int32", copy=False, device=device), Array)
    assert_type(xp.can_cast(xp.int8, xp.int16), bool)
    assert_type(xp.isdtype(x.dtype, ("real floating", "bool")), bool)
    assert_type(xp.result_type(x, xp.int8), np.dtype[Any])
    assert_type(xp.finfo(xp.float32).eps, float)
    assert_type(xp.iinfo(n).max, int)
    assert_type(xp.pi, float)


def operators() -> None:
    assert_type(x + 1, Array)
    assert_type(1 - x, Array)
    assert_type(x @ x, Array)
    assert_type(x // 2.5, Array)
    assert_type(divmod(n, 2), tuple[Array, Array])
    assert_type(-x, Array)
    assert_type(abs(x), Array)
    assert_type(x == 1, Array)
    assert_type(x <= host, Array)
    assert_type(~(x > 1), Array)
    assert_type(round(x, 1), Array)
    assert_type(n << 1, Array)


def indexing() -> None:
    assert_type(x[0], Array)
    assert_type(x[..., None, ::-1], Array)
    assert_type(x[n[1], 0], Array)
    assert_type(x[x > 1], Array)
    assert_type(x[[0, 1]], Array)
    assert_type(x.at[0].set(1.0), Array)
    assert_type(x.at[0, 1:].add(x[0, 1:], mode="drop"), Array)
    assert_type(x.at[[0, 1]].multiply([2.0, 3.0]), Array)
    assert_type(x.at[x > 1].min(0), Array)
    assert_type(x.at[0].apply(lambda v: v + 1), Array)
    assert_type(x.at[n].get(mode="fill", fill_value=0.0), Array)


def methods() -> None:
    assert_type(x.sum(axis=0), Array)
    assert_type(x.sum(0, xp.float32, None, True), Array)
    assert_type(x.mean(0).std(ddof=0), Array)
    assert_type(x.reshape(4), Array)
    assert_type(x.reshape((2, -1)), Array)
    assert_type(x.T, Array)
    assert_type(x.transpose(1, 0), Array)
    assert_type(x.astype(xp.float16), Array)
    assert_type(n.nonzero(), tuple[Array, ...])
    assert_type(x.clip(min=0), Array)
    assert_type(x.copy().round(2), Array)
    assert_type(x.to_device(device), Array)
    assert_type(x.block_until_ready(), Array)


def attributes() -> None:
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, np.dtype[Any])
    assert_type(x.ndim + x.size + x.nbytes, int)
    assert_type(x.sharding, Sharding)
    assert_type(x.device, Device | Sharding)
    assert_type(x.addressable_shards[0].data, Array)
    assert_type(float(x[0, 0]), float)
    assert_type(bool(x[0, 0]), bool)
    assert_type(len(x), int)
    x.copy().delete()


def lax_operations() -> None:
    image, kernel = xp.ones((1, 4, 4, 1)), xp.ones((2, 2, 1, 1))
    orders = ("NHWC", "HWIO", "NHWC")
    numbers = lax.conv_dimension_numbers(image.shape, kernel.shape, orders)
    for given in (orders, numbers):
        lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=given)
    lax.conv_dimension_numbers((1, 1, 2), (1, 1, 2), None)
    lax.conv_dimension_numbers((1, 1), (1, 1), ((0, 1), (0, 1), [0, 1]))
    results = [plugrt.ShapeDtypeStruct((2,), np.dtype("float32"))]
    assert len([lambda: lax.custom_call("name", [x], results)]) == 1
    assert len([lambda: lax.custom_call("name", [x], host)]) == 1
    assert_type(lax.add(x, x), Array)
    assert_type(lax.exp(1.0), Array)
    assert_type(lax.abs(host), Array)
    assert_type(lax.reduce_sum(x, (0,)), Array)
    assert_type(lax.cumsum(x, axis=1, reverse=True), Array)
    assert_type(lax.sort(x, 0), Array)
    assert_type(lax.sort(host), Array)
    assert_type(lax.sort((x, host), num_keys=2), tuple[Array, ...])
    assert_type(lax.sort([x, x]), tuple[Array, ...])
    assert_type(lax.sort_key_val(x, x), tuple[Array, Array])
    assert_type(lax.top_k(x, 2), list[Array])
    largest, where = lax.top_k(x, 1)
    assert_type(largest + where, Array)
    assert_type(lax.argmax(x, 0, xp.int32), Array)
    assert_type(lax.dot(x, x, precision="highest"), Array)
    assert_type(lax.dot_general(x, x, (((1,), (0,)), ((), ()))), Array)
    assert_type(lax.convert_element_type(x, np.float16), Array)
    assert_type(lax.broadcast_in_dim(n, (2, 3), (1,)), Array)
    assert_type(lax.iota(xp.int32, 4), Array)
    assert_type(lax.full((2, 2), 1.0), Array)
    assert_type(lax.pad(x, 0.0, [(1, 1, 0), (0, 0, 0)]), Array)
    assert_type(lax.split(x, [1, 1]), list[Array])
    assert_type(lax.slice(x, (0, 0), (1, 2)), Array)
    assert_type(lax.dynamic_slice(x, (0, n[1]), (1, 1)), Array)
    assert_type(lax.dynamic_update_slice(x, x[:1, :1], [0, 0]), Array)
    assert_type(lax.select(x > 1, x, x), Array)
    assert_type(lax.clamp(0.0, x, 2.0), Array)
    assert_type(lax.fft(x, lax.FftType.RFFT, (2,)), Array)
    assert_type(lax.optimization_barrier([x, x]), list[Array])


def control_flow() -> None:
    assert_type(lax.fori_loop(0, 3, lambda i, v: v * 2, x), Array)
    assert_type(lax.while_loop(lambda v: xp.sum(v) < 50, lambda v: v * 2, x), Array)
    lax.cond(x[0, 0] > 0, lambda v: v + 1, lambda v: v - 1, x)
    lax.switch(0, [lambda v: v, lambda v: -v], x)
    carry, ys = lax.scan(lambda c, v: (c + v, c), xp.asarray(0.0), x[0])
    xp.add(carry, ys)
    lax.map(lambda row: row * 2, x)
    lax.associative_scan(lambda a, b: a + b, x)


def random_numbers() -> None:
    key = random.PRNGKey(0)
    assert_type(key, Array)
    assert_type(random.split(key, 3), Array)
    assert_type(random.fold_in(key, 7), Array)
    assert_type(random.normal(key, (2, 3)), Array)
    assert_type(random.uniform(key, (2,), xp.float32, minval=-1, maxval=x[0, 0]), Array)
    assert_type(random.randint(key, (4,), 0, 10), Array)
    assert_type(random.bernoulli(key, 0.3, (5,)), Array)
    assert_type(random.permutation(key, 5), Array)
    assert_type(random.choice(key, n, (2,), replace=False), Array)
    assert_type(random.categorical(key, x), Array)


@plugrt.jit
def scaled(v: ArrayLike, factor: float = 2.0) -> Array:
    return xp.multiply(v, factor)


@plugrt.jit(static_argnames="times")
def repeated(v: Array, *, times: int) -> tuple[Array, Array]:
    return xp.tile(v, (times,)), v


class Model:
    def __init__(self) -> None:
        self.weight = xp.asarray(2.0)

    @plugrt.jit
    def __call__(self, v: Array) -> Array:
        return v

    def parameters(self) -> dict[str, Array]:
        return {"weight": self.weight}


def transforms() -> None:
    assert_type(scaled(x), Array)
    assert_type(scaled(host, factor=3.0), Array)
    assert_type(repeated(n, times=2), tuple[Array, Array])
    assert_type(plugrt.jit(lambda v: v + 1)(x), Any)
    jitted: Callable[[Array], Array] = plugrt.jit(square)
    assert_type(jitted(x), Array)
    one = SingleDeviceSharding(device)
    for shardings in (one, (one,), [one], {"v": one}, (None, [one]), None):
        plugrt.jit(square, in_shardings=shardings, out_shardings=one)
    plugrt.jit(square, in_shardings=(one,), out_shardings={"out": [one, None]})
    plugrt.jit(square, in_shardings=[one])
    mapped = plugrt.pmap(square, axis_name="i", devices=[device])
    plugrt.pmap(square, in_axes=(0,), out_axes=None)
    plugrt.pmap(square, in_axes=[{"weights": None, "bias": 0}], out_axes={"loss": (0, None)})
    assert_type(mapped(x[None]), Array)
    assert_type(mapped.lower(x[None]).as_text(), str)
    lowered = scaled.lower(plugrt.ShapeDtypeStruct((2,), xp.float32))
    assert_type(lowered.as_text(debug_info=True), str)
    compiled = lowered.compile()
    compiled(np.ones(2, np.float32))
    call: CompiledCall = compiled
    assert_type(call.cost_analysis(), Mapping[str, OptionValue])
    scaled.clear_cache()


def square(v: Array) -> Array:
    return v * v


def mapped_collectives() -> None:
    def body(v: Array) -> Array:
        total = assert_type(lax.psum(v, "i"), Array)
        pair = assert_type(lax.pmean((v, v), "i"), tuple[Array, Array])
        moved = assert_type(lax.ppermute(v, "i", [(0, 0)]), Array)
        gathered = assert_type(lax.all_gather(v, "i", axis=0, tiled=True), Array)
        return total + pair[0] + moved + gathered + assert_type(lax.axis_index("i"), Array)

    plugrt.pmap(body, "i", devices=[device])(x[None])


def placement() -> None:
    one = SingleDeviceSharding(device)
    assert_type(plugrt.device_put(host), Array)
    assert_type(plugrt.device_put(1.5, device), Array)
    assert_type(plugrt.device_put(x, one, may_alias=True), Array)
    assert_type(plugrt.device_put(x[None], PmapSharding([device])), Array)
    plugrt.device_put({"a": host, "b": [1, 2]}, device)
    assert_type(plugrt.device_get(x), npt.NDArray[Any])
    assert_type(plugrt.block_until_ready({"a": x}), dict[str, Array])
    plugrt.device_put_sharded([host], [device])
    plugrt.device_put_replicated(host, [device])


def backends() -> None:
    assert_type(plugrt.devices(), list[Device])
    assert_type(plugrt.local_devices(backend="cpu"), list[Device])
    assert_type(plugrt.device_count("cpu"), int)
    assert_type(plugrt.default_backend(), str)
    assert_type(plugrt.get_backend("cpu"), Client)
    assert_type(plugrt.get_backend().devices()[0].kind, str)
    assert_type(plugrt.backends(), Mapping[str, Client])
    assert_type(plugrt.process_index(), int)
    assert_type(plugrt.plugins.table(), tuple[Record, ...])
    assert_type(plugrt.plugins.table()[0].name, str)


def settings() -> None:
    with plugrt.disable_jit(), plugrt.debug_nans(True), plugrt.default_device(device):
        scaled(x)
    with plugrt.config.override(debug_nans=True, default_matmul_precision="highest"):
        assert_type(plugrt.config.enable_x64, bool | None)
    plugrt.config.update("jax_enable_x64", plugrt.config.enable_x64)
    plugrt.config.update("default_device", None)
    plugrt.config.update("client_create_options", {})
    plugrt.config.update("persistent_cache_min_compile_time_secs", 1)
    plugrt.monitoring.register_event_listener(heard)
    plugrt.monitoring.unregister_event_listener(heard)


def heard(event: str, /, **kwargs: str | int) -> None:
    pass


def trees() -> None:
    leaves, spec = plugrt.tree.flatten({"a": x, "b": (n, None)})
    assert_type(leaves, list[Any])
    assert_type(spec, plugrt.PyTreeSpec)
    plugrt.tree.map(lambda v: v + 1, [x, x])
    plugrt.tree.unflatten(spec, leaves)


PROGRAM = """
module @double {
  func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %y = stablehlo.add %x, %x : tensor<3xf32>
    return %y : tensor<3xf32>
  }
}
"""


def programs() -> None:
    program = plugrt.load_program(PROGRAM)
    plugrt.load_program(bytearray(PROGRAM.encode()), name="double")
    assert_type(plugrt.compile(PROGRAM).device, Device)
    assert_type(program, Program)
    double = plugrt.compile(program, device=device, env_overrides={"xla_dump_to": ""})
    double(np.ones(3, np.float32))
    assert_type(double.device, Device)
    assert_type(len(double.output_types), int)


class Twice(Backend):
    platform, version = "twice", "1.0"

    def devices(self) -> Sequence[str]:
        return ["toy chip"]

    def put(self, array: npt.NDArray[Any], device: int) -> Any:
        return array.copy()

    def get(self, handle: Any) -> npt.NDArray[Any]:
        result: npt.NDArray[Any] = handle
        return result

    def compile(
        self, program: Program, options: CompileOptions
    ) -> Callable[[Sequence[Sequence[Any]]], Sequence[Sequence[Any]]]:
        return lambda arguments: [[2 * handle for handle in arguments[0]]]


class Absent(Plugin):
    name = "absent"
    platform = "absent"

    def probe(self) -> Availability:
        return Availability.no("there is no such chip", cure="buy one")


def plugins() -> None:
    plugin = BackendPlugin("twice", Twice, priority=1)
    assert_type(plugin.name, str)
    assert_type(Absent().probe(), Availability)


class Celsius:
    """An object that is no array, but that NumPy converts to one."""

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, np.dtype[Any]]:
        return np.asarray([20.0], dtype)


def annotated(
    value: ArrayLike, axes: Axes, dtype: DTypeLike, place: DeviceLike, shape: Shape
) -> Array:
    made = xp.zeros(shape, dtype=dtype, device=place)
    return xp.sum(xp.add(made, value), axis=axes)


def errors() -> None:
    try:
        xp.reshape(x, (3,))
    except plugrt.errors.ShapeError as error:
        caught: PlugrtError = error
        assert isinstance(caught, ValueError)
    annotated(host, (0, 1), "float32", device, (2, 2))
    scaled(1)
    repeated(n, times=1)


def main() -> None:
    """Runs each of the functions above, except those that others call."""
    for function in (
        creation, elementwise, reductions, shapes, searching_and_sets, products, dtypes, operators,
        indexing, methods, attributes, lax_operations, control_flow, random_numbers, transforms,
        mapped_collectives, placement, backends, settings, trees, programs, plugins, errors,
    ):  # fmt: skip
        function()
