"""`script`: a case as a program in steps, which runs with plugrt and with JAX alike."""

from __future__ import annotations

from support.differential.case import MESHES, Arg, Case, Place

PRELUDE = f"""\
import contextlib
import itertools
import math
import operator

import ml_dtypes
import numpy

MESHES = {MESHES!r}


def mesh(name):
    sizes, names, ids = MESHES[name]
    return Mesh(numpy.array([devices[i] for i in ids]).reshape(sizes), names)


def named(name, *spec):
    return NamedSharding(mesh(name), P(*spec))


def values(dtype, shape, seed):
    rng = numpy.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype[0] == "u" or "int" in dtype:
        return rng.integers(0 if dtype[0] == "u" else -3, 8, shape).astype(dtype)
    found = numpy.asarray(rng.standard_normal(shape) * 3)
    if dtype.startswith("complex"):
        found = found + 1j * rng.standard_normal(shape)
    elif seed % 7 == 0 and found.size:
        found.flat[0] = (numpy.nan, numpy.inf, -0.0)[seed % 3]
    return numpy.asarray(found).astype(numpy.dtype(dtype))


@contextlib.contextmanager
def device_of_config(device):
    before = getattr(m.config, DEFAULT_DEVICE)
    m.config.update(DEFAULT_DEVICE, device)
    try:
        yield
    finally:
        m.config.update(DEFAULT_DEVICE, before)


def weak(value, shape):
    return m.jit(lambda: own.broadcast_to(value, shape))()
"""
JAX_PRELUDE = """\
import jax as m
import jax.numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

own, devices = np, m.devices("cpu")
constrain = lax.with_sharding_constraint
from_jax = m.jit
enable_x64 = m.enable_x64
DEFAULT_DEVICE = "jax_default_device"
"""
PLUGRT_PRELUDE = """\
import plugrt as m
from plugrt import array_api as np
from plugrt import lax
from plugrt.sharding import Mesh, NamedSharding, SingleDeviceSharding
from plugrt.sharding import PartitionSpec as P

own, devices = np, m.devices()
constrain = m.with_sharding_constraint
from_jax = m.from_jax
DEFAULT_DEVICE = "default_device"


def enable_x64(on):
    return m.config.override(enable_x64=on)
"""
FUNCTIONS_OF_JAX = """\
import jax
import jax.numpy as np
from jax import lax

enable_x64_of_m = enable_x64


def enable_x64(on):
    both = contextlib.ExitStack()
    both.enter_context(jax.enable_x64(on))
    both.enter_context(enable_x64_of_m(on))
    return both


def gradient(f):
    return jax.grad(lambda *args: np.sum(f(*args)))


def value_and_gradient(f):
    return jax.value_and_grad(lambda *args: np.sum(f(*args)))
"""
"""The prefix of a function for `from_jax`: it is JAX's on both sides."""

PYTHON = {
    "bool": ("True", "False"),
    "int": ("2", "0", "-1", "7"),
    "float": ("0.5", "2.0", "-1.25", "math.nan"),
    "complex": ("1j", "(2+0.5j)"),
}


def place_text(place: Place, memory: str = "") -> str:
    """Returns a sharding as Python."""
    if memory:
        return f"{place_text(place)}.with_memory_kind({memory!r})"
    if isinstance(place, int):
        return f"SingleDeviceSharding(devices[{place}])"
    if place is None:
        return "None"
    name, spec = place
    return f"named({', '.join(map(repr, (name, *spec)))})"


def host_text(arg: Arg) -> str:
    """Returns a host value as Python: a number, a NumPy scalar or a NumPy array."""
    if arg.kind == "python" or arg.kind == "weak":
        known = PYTHON[arg.dtype]
        return known[arg.seed % len(known)]
    data = f"values({arg.dtype!r}, {arg.shape!r}, {arg.seed})"
    return f"{data}[()]" if arg.kind == "scalar" else data


def argument_text(arg: Arg) -> str:
    """Returns an argument as Python."""
    text = host_text(arg)
    if arg.kind == "weak":
        text = f"weak({text}, {arg.shape!r})"
    if not arg.is_array or (arg.kind == "weak" and arg.place is None):
        return text
    place = "" if arg.place is None else f", {place_text(arg.place, arg.memory)}"
    return f"m.device_put({text}{place})"


def struct_text(arg: Arg, name: str) -> str:
    """Returns the struct of an argument, as Python."""
    if arg.kind == "python":
        return name
    place = f", sharding={place_text(arg.place, arg.memory)}" if arg.place is not None else ""
    weak = ", weak_type=True" if arg.kind == "weak" else ""
    return f"m.ShapeDtypeStruct({name}.shape, {name}.dtype{place}{weak})"


def script(case: Case) -> list[tuple[str, str]]:
    """Returns steps, each a name and a piece of a program.

    The program makes ``args``, calls, and leaves ``r``, after a second call ``again`` and ``s``.
    """
    names = "xyzw"[: len(case.args)]
    parameters = ", ".join(names)
    form = (case.transform and f"{case.transform}(f)") or "f"
    options = "".join(f", {name}={value}" for name, value in case.options)
    wrapped = {
        "eager": form,
        "device_put": f"lambda *args: m.device_put(args{options})",
        "from_jax": f"from_jax({form}{options})",
    }.get(case.form, f"m.{case.form}(f{options})")
    if case.form == "shard_map" and case.transform:
        wrapped = f"{case.transform}({wrapped})"
    body = f"    traced.append(0)\n    return {case.body}"
    steps = [
        ("arguments", f"args = ({''.join(argument_text(a) + ', ' for a in case.args)})"),
        ("define", f"traced = []\ndef f({parameters}):\n{body}"),
        ("wrap", f"call = {wrapped}"),
    ]  # fmt: skip
    if case.aot:
        given = "*args"
        if case.aot == "structs":
            given = ", ".join(struct_text(a, f"args[{i}]") for i, a in enumerate(case.args))
        steps += [
            ("lower", f"call = call.lower({given})"),
            ("compile", "call = call.compile()"),
            ("input_shardings", "inputs = call.input_shardings"),
            ("in_avals", ""),
            ("out_info", ""),
        ]
    steps.append(("call", "r = call(*args)"))
    if case.again:
        second = "".join(argument_text(a) + ", " for a in case.again)
        steps += [("arguments", f"others = ({second})"), ("again", "again = call(*others)")]
    if case.then:
        steps.append(("then", f"s = {case.then}"))
    return steps


def program(case: Case, ours: bool) -> str:
    """Returns the whole program of one side, for reports: it runs in ``python``."""
    text = "".join(f"{text}\n" for _, text in script(case))
    contexts = f"enable_x64({case.x64})" + (f", {case.setting}" if case.setting else "")
    within = "".join(f"    {line}\n" for line in text.splitlines())
    own = PLUGRT_PRELUDE if ours else JAX_PRELUDE
    if case.form == "from_jax":
        own += FUNCTIONS_OF_JAX
    shown = "s" if case.then else "r"
    return (
        "import os\nos.environ.update(JAX_PLATFORMS='cpu', JAX_NUM_CPU_DEVICES='8')\n"
        f"{PRELUDE}\n{own}\nwith {contexts}:\n{within}    print({shown})\n"
    )
