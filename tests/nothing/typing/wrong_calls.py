"""Calls that type checkers must refuse: on each marked line, and on no other.

A mark is ``wrong:`` in a comment, with mypy's code; pyright must find an error on the line as well.
"""

from __future__ import annotations

import numpy as np

import plugrt
from plugrt import Array, lax, random
from plugrt import array_api as xp
from plugrt.interface import CompileOptions, Program
from plugrt.sharding import PmapSharding, SingleDeviceSharding
from plugrt_sdk import Backend, BackendPlugin

x = xp.ones((2, 2))
key = random.PRNGKey(0)
device = plugrt.devices()[0]


@plugrt.jit
def jitted(v: Array, times: int = 1) -> Array:
    return v * times


@plugrt.jit(static_argnums=1)
def static(v: Array, times: int) -> Array:
    return v * times


mapped = plugrt.pmap(jitted, "i")

xp.sum("nonsense")  # wrong: arg-type
xp.sum(x, axes=3)  # wrong: call-arg
xp.sum(x, 0, None, True)  # wrong: call-arg
xp.sum(x, axis="rows")  # wrong: arg-type
xp.sum(x, axis=1.5)  # wrong: arg-type
xp.sum()  # wrong: call-arg
xp.sum(None)  # wrong: arg-type
xp.sum([1, 2, 3])  # wrong: arg-type
xp.sum(x=x)  # wrong: call-arg
xp.asarray("text")  # wrong: arg-type
xp.asarray({1, 2})  # wrong: arg-type
xp.asarray(None)  # wrong: arg-type
xp.asarray(np.float32)  # wrong: arg-type
xp.from_dlpack([1, 2])  # wrong: arg-type
xp.finfo(3)  # wrong: arg-type
xp.add(x)  # wrong: call-arg
xp.add(x, object())  # wrong: arg-type
xp.mean(x, dtype=xp.float32)  # wrong: call-arg
xp.reshape(x, "4")  # wrong: arg-type
xp.reshape(x, 2.0)  # wrong: arg-type
xp.zeros("3")  # wrong: arg-type
xp.zeros((2, 3), xp.float32, None)  # wrong: call-arg
xp.zeros((2,), dtype=3)  # wrong: arg-type
xp.zeros((2,), device="cpu")  # wrong: arg-type
xp.full((2,), "x")  # wrong: arg-type
xp.arange("3")  # wrong: arg-type
xp.linspace(0, 1)  # wrong: call-arg
xp.linspace("a", 3, 5)  # wrong: arg-type
xp.concat(x, 0)  # wrong: arg-type
xp.concat([x, "y"])  # wrong: list-item
xp.permute_dims(x, 1)  # wrong: arg-type
xp.searchsorted(x, 1, side="middle")  # wrong: arg-type
xp.meshgrid(x, indexing="yx")  # wrong: arg-type
xp.argsort(x, descending="yes")  # wrong: arg-type
xp.where(x > 1, x)  # wrong: call-arg
xp.tensordot(x, x, axes="ij")  # wrong: arg-type
xp.arccos(x)  # wrong: attr-defined
xp.unique_all(x).values.total()  # wrong: attr-defined
text: str = xp.sum(x)  # wrong: assignment
number: float = xp.mean(x)  # wrong: assignment

x + "1"  # wrong: operator
x @ None  # wrong: operator
less = x < "a"  # wrong: operator
x["first"]  # wrong: index
x[1.5]  # wrong: index
x[0, "first"]  # wrong: index
x["first"] = 1.0  # wrong: index
x.at[0].put(1)  # wrong: attr-defined
x.at[0].set("one")  # wrong: arg-type
x.at["a"].set(1)  # wrong: index
x.at[0].add(1, mode="wrap around")  # wrong: arg-type
x.sum(axis="a")  # wrong: arg-type
x.reshape("4")  # wrong: arg-type
x.shape = (4,)  # wrong: misc
x.argmax(axis=(0, 1))  # wrong: arg-type
x.to_device("cpu")  # wrong: arg-type
x.flattened()  # wrong: attr-defined

lax.add(x)  # wrong: call-arg
lax.add(x, "y")  # wrong: arg-type
lax.exp([1.0])  # wrong: arg-type
lax.reduce_sum(x, 0)  # wrong: arg-type
lax.reduce_sum(x)  # wrong: call-arg
lax.cumsum(x, axis="rows")  # wrong: arg-type
lax.sort("ab")  # wrong: arg-type
lax.sort(x).total()  # wrong: attr-defined
lax.top_k(x, 2).total()  # wrong: attr-defined
lax.sort_key_val(x, x).total()  # wrong: attr-defined
lax.slice(x, 0, 1)  # wrong: arg-type
lax.dot(x, x, precision=3)  # wrong: arg-type
lax.iota(xp.int32, "4")  # wrong: arg-type
lax.convert_element_type(x)  # wrong: call-arg
lax.fori_loop(0, "3", lambda i, v: v, x)  # wrong: arg-type
lax.fori_loop(0, 3, lambda i, v: v)  # wrong: call-arg
lax.while_loop(True, lambda v: v, x)  # wrong: arg-type
lax.cond("yes", jitted, jitted, x)  # wrong: arg-type
lax.scan(1, x, x)  # wrong: arg-type
lax.conv_general_dilated(x, x, (1,), "SAME", dimension_numbers="NHWC")  # wrong: arg-type
lax.conv_dimension_numbers((1, 1), (1, 1), (1, 2, 3))  # wrong: arg-type
lax.custom_call("name", [x], "float32")  # wrong: arg-type
lax.custom_call("name", [x], [xp.float32])  # wrong: list-item
lax.psum(x)  # wrong: call-arg
lax.psum(x, {"i"})  # wrong: arg-type
lax.fft(x, None, (2,))  # wrong: arg-type

random.normal()  # wrong: call-arg
random.normal("seed", (2,))  # wrong: arg-type
random.normal(3)  # wrong: arg-type
random.split(1.5)  # wrong: arg-type
random.permutation(0, x)  # wrong: arg-type
random.choice(True, x)  # wrong: arg-type
random.normal(key, "2")  # wrong: arg-type
random.randint(key, (2,))  # wrong: call-arg
random.PRNGKey("seed")  # wrong: arg-type
random.split(key, "two")  # wrong: arg-type
random.gaussian(key)  # wrong: attr-defined

jitted("x")  # wrong: arg-type
jitted(x, times="2")  # wrong: arg-type
jitted(x, 1, 2)  # wrong: call-arg
jitted()  # wrong: call-arg
jitted(x).missing()  # wrong: attr-defined
static(x)  # wrong: call-arg
mapped("x")  # wrong: arg-type
plugrt.jit(3)  # wrong: call-overload
plugrt.jit(jitted, static_argnum=1)  # wrong: call-overload
plugrt.jit(jitted, donate_argnums="0")  # wrong: arg-type
plugrt.jit(jitted, in_shardings="cpu")  # wrong: arg-type
plugrt.jit(jitted, in_shardings=("cpu",))  # wrong: arg-type
plugrt.jit(jitted, out_shardings=0)  # wrong: call-overload
plugrt.jit(static_args=1)  # wrong: call-overload
plugrt.pmap(3)  # wrong: arg-type
plugrt.pmap(jitted, devices=3)  # wrong: arg-type
plugrt.pmap(jitted, in_axes="a")  # wrong: arg-type
plugrt.pmap(jitted, in_axes=(0, "a"))  # wrong: arg-type
plugrt.pmap(jitted, out_axes=0.5)  # wrong: arg-type
plugrt.device_put(x, "cpu")  # wrong: call-overload
plugrt.device_put(x, device, donated=True)  # wrong: call-overload
plugrt.device_put()  # wrong: call-overload
plugrt.devices(3)  # wrong: arg-type
plugrt.device_cout()  # wrong: attr-defined
plugrt.get_backend("cpu").device()  # wrong: attr-defined
plugrt.topology(3)  # wrong: arg-type
plugrt.compile("module {}", backend=3)  # wrong: call-overload
plugrt.compile("module {}", device="cpu")  # wrong: call-overload
plugrt.compile(3)  # wrong: call-overload
plugrt.load_program()  # wrong: call-arg
plugrt.load_program(3)  # wrong: arg-type
plugrt.Array(x)  # wrong: arg-type
plugrt.ShapeDtypeStruct((2,))  # wrong: call-arg
plugrt.disable_jit("yes")  # wrong: arg-type
plugrt.config.update("nope", 3)  # wrong: call-overload
plugrt.config.update("debug_nans", 3.5)  # wrong: call-overload
plugrt.config.update("jax_num_cpu_devices", "two")  # wrong: call-overload
plugrt.config.update("cpu_collectives_implementation", "tcp")  # wrong: call-overload
plugrt.config.update("debug_nans")  # wrong: call-overload
plugrt.config.override(nope=True)  # wrong: call-arg
plugrt.config.override(debug_nans="yes")  # wrong: arg-type
plugrt.config.debug_nan.bit_length()  # wrong: attr-defined
plugrt.monitoring.register_event_listener(print)  # wrong: arg-type
plugrt.plugins.register("cuda")  # wrong: arg-type
SingleDeviceSharding("cpu")  # wrong: arg-type
PmapSharding(device)  # wrong: arg-type
plugrt.errors.ShapeErorr("x")  # wrong: attr-defined
plugrt.array_api.sin(np.ones(2), out=x)  # wrong: call-arg


class Half(Backend):
    def devices(self) -> int:  # wrong: override
        return 1

    def compile(self, program: Program) -> None:  # wrong: override
        return None


Half()  # wrong: abstract
BackendPlugin("half", 3)  # wrong: arg-type
CompileOptions(device_assignment=0)  # wrong: arg-type
