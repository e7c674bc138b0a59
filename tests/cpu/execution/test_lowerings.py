"""Lowerings: functions that replace a platform's operations; they are part of all cache keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import config, ffi, jit, lax, monitoring, pmap
from plugrt.errors import ConfigError, ProgramError
from plugrt.plugins import LoweringContext
from plugrt.stablehlo.modules import parse
from support.behaviour import behaviour
from support.compiles import counting
from support.jax_oracle import same

X = np.float32([0.5, 1, 2])
HERE = plugrt.default_backend()
CALLS: list[str] = []


def thousandfold(context: LoweringContext, x: Any) -> Any:
    """Replaces an operation on one operand by a multiplication."""
    CALLS.append(context.operation)
    return x * 1000


def cosine(x: Any) -> Any:
    return xp.cos(x)


def lowered(**rules: Any) -> Any:
    return config.override(
        lowerings={HERE: {n.replace("_", ".", 1): r for n, r in rules.items()}, "other": rules}
    )


@behaviour(
    23,
    "a registered function replaces an operation on its platform, and caches keep both apart",
    jax="as a lowering rule of a primitive, which applies to programs that are not cached",
)
def test_calls_with_and_without() -> None:
    jitted, array = jit(cosine), plugrt.device_put(X)
    calls: list[Any] = [
        lambda: jitted(X),
        lambda: xp.cos(array),
        lambda: pmap(cosine)(X[None])[0],
        lambda: jitted.lower(X).compile()(X),
        lambda: jit(lambda x: jitted(x) + 0)(array),
        lambda: lax.fori_loop(0, 1, lambda _, x: cosine(x), array),
    ]
    for _ in range(2):
        for call in calls:
            same(call(), np.cos(X), rtol=1e-6)
            with lowered(stablehlo_cosine=thousandfold):
                same(call(), X * 1000)
                with lowered(stablehlo_cosine=lambda context, x: x * 2):
                    same(call(), X * 2)
            with lowered(stablehlo_sine=thousandfold):
                same(call(), np.cos(X), rtol=1e-6)
    compiled = jitted.lower(X).compile()
    with lowered(stablehlo_cosine=thousandfold):
        same(compiled(X), np.cos(X), rtol=1e-6)


def test_outside_of_jit_each_program_is_compiled_once() -> None:
    """Earlier, composites with a lowering and platform conditionals were compiled at each call."""
    scale = 2.0

    def scaled(x: Any) -> Any:
        return x * array

    mine = lax.composite(scaled, "my.scaled")
    calls = [lambda: lax.platform_dependent(X, default=scaled), lambda: mine(X)]
    with lowered(my_scaled=lambda context, x, *_: x * 1000):
        for i in range(3):
            array = plugrt.device_put(X * scale)  # a captured value may change
            with counting() as counts:
                chosen, replaced = (call() for call in calls)
            same(chosen, X * X * scale)
            same(replaced, X * 1000)
            assert counts[monitoring.COMPILE] == (0 if i else 2)
            scale += 1


def test_set_for_the_process_and_taken_back() -> None:
    jitted = jit(lambda x: cosine(x) + 0)
    same(jitted(X), np.cos(X), rtol=1e-6)
    config.update("lowerings", [(HERE, "stablehlo.cosine", thousandfold)])
    try:
        same(jitted(X), X * 1000)
        assert config.lowerings == ((HERE, "stablehlo.cosine", thousandfold),)
    finally:
        config.update("lowerings", ())
    same(jitted(X), np.cos(X), rtol=1e-6)


@behaviour(23, "the persistent cache has an entry for each result of the lowerings", jax="same")
def test_the_persistent_cache(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"compilation_cache_dir": str(tmp_path / "cache"),
                                "persistent_cache_min_compile_time_secs": 0}  # fmt: skip
    with config.override(**settings):
        for _ in range(2):
            same(jit(lambda x: xp.cos(x) + 48)(X), np.cos(X) + 48, rtol=1e-6)
            with lowered(stablehlo_cosine=thousandfold):
                same(jit(lambda x: xp.cos(x) + 48)(X), X * 1000 + 48)


@behaviour(
    23,
    "a lowering to a custom call, whose handler is registered for the platform, runs that",
    jax="same",
)
def test_to_a_custom_call() -> None:
    if not plugrt.get_backend().capabilities.custom_calls:
        pytest.skip(f"{HERE} does not declare custom_calls")

    def handler(args: Any, results: Any, attributes: Any) -> None:
        results[0][...] = args[0] + attributes["shift"]

    def call(context: LoweringContext, x: Any) -> Any:
        [kind] = context.result_types
        return ffi.ffi_call("plugrt_test_lowered", kind)(x, shift=np.float32(7))

    ffi.register_target("plugrt_test_lowered", handler, platform=HERE)
    two = jit(lambda x: cosine(x) + cosine(x * 2))
    with lowered(stablehlo_cosine=call):
        same(two(X), X * 3 + 14)
        assert two.lower(X).as_text().count("@plugrt_test_lowered(") == 1, "one function for both"
        same(jit(lambda x: lax.cond(True, cosine, lambda x: x, x))(X), X + 7)


@behaviour(
    23, "a lowering to a composite keeps the operation as the composite's decomposition", jax="same"
)
def test_to_a_composite() -> None:
    def name_it(context: LoweringContext, x: Any) -> Any:
        return lax.composite(lambda x: lax.cos(x), "their.cosine", 2)(x)

    with lowered(stablehlo_cosine=name_it):
        same(jit(cosine)(X), np.cos(X), rtol=1e-6)
        text = jit(cosine).lower(X).as_text()
        assert 'stablehlo.composite "their.cosine"' in text
    assert "composite" not in jit(cosine).lower(X).as_text()


@behaviour(
    23,
    "composites and CHLO's operations are lowered by name, with their attributes and version",
    jax="JAX lowers primitives",
)
def test_composites_and_chlo() -> None:
    told = []

    def look(context: LoweringContext, x: Any, *others: Any) -> Any:
        told.append((context.operation, dict(context.attributes), context.version))
        return x + len(context.platform)

    mine = lax.composite(lambda x, **_: x, "my.identity", 4)
    program = jit(
        lambda x: (mine(x, axis=1, names=["a"], at=np.arange(2)), lax.erf(x), lax.asin(x))
    )
    with lowered(my_identity=look, chlo_erf=thousandfold, stablehlo_add=look):
        first, second, third = program(X)
        text = program.lower(X).as_text()
    same((first, second), (X + len(HERE), X * 1000))
    [(name, attributes, version)] = [each for each in told if each[0] == "my.identity"]
    assert (name, version) == ("my.identity", 4)
    assert (attributes["axis"], attributes["names"]) == (1, ["a"])
    assert attributes["at"].tolist() == [0, 1]
    assert "my.identity" not in text
    assert "@my_identity" not in text, "nor what it stood for"
    with lowered(my_identity=lambda context, x: x + context.attributes["axis"]):
        both = jit(lambda x: (mine(x, axis=1), mine(x, axis=2), mine(x, axis=1)))(X)
    same(both, (X + 1, X + 2, X + 1))
    assert any(each[0] == "stablehlo.add" for each in told), "what CHLO's arc sine has become"
    assert np.asarray(third).shape == (3,)


@behaviour(
    23,
    "a lowering may return None, call jitted functions, use constants, and is called once a type",
    jax="JAX has no None",
)
def test_lowerings_may_return_none_call_jit_and_use_constants() -> None:
    table = np.arange(3000, dtype=np.float32)
    shift = plugrt.device_put(np.float32(5))
    double = jit(lambda x: x + x)

    def floats_alone(context: LoweringContext, x: Any) -> Any:
        CALLS.append(str(x.dtype))
        if x.dtype != np.float32:
            return None
        return double(xp.cos(x) * 0) + table[2] + xp.asarray(table)[1] + shift

    CALLS.clear()
    with lowered(stablehlo_cosine=floats_alone):
        found = jit(lambda x, y: (cosine(x), cosine(x + 1), cosine(y)))(X, X.astype(np.float16))
    same(found[:2], (np.full_like(X, 8), np.full_like(X, 8)))
    same(found[2], np.cos(X.astype(np.float16)), rtol=1e-2)
    assert sorted(CALLS) == ["float16", "float32"]
    # Functions that a lowering adds get names that the program does not use.
    helper = jit(lambda x: xp.cos(x) * 3)
    with lowered(stablehlo_cosine=lambda context, x: double(lax.asinh(x))):
        same(jit(lambda x: double(helper(x)) + helper(x * 2))(X),
             12 * np.arcsinh(X) + 6 * np.arcsinh(X * 2), rtol=1e-5)  # fmt: skip


def test_devices_that_lowerings_name_leave_no_marks() -> None:
    """The program's devices are chosen before its operations are replaced."""
    last = plugrt.sharding.SingleDeviceSharding(plugrt.devices()[-1])

    def placed(context: LoweringContext, x: Any) -> Any:
        return plugrt.with_sharding_constraint(x * 2, last)

    with lowered(stablehlo_cosine=placed):
        f = jit(cosine)
        same(f(X), X * 2)
        assert f(X).devices() == {plugrt.devices()[0]}
        assert "plugrt.claims" not in f.lower(X).as_text()


def test_lowerings_that_call_python() -> None:
    if not plugrt.get_backend().capabilities.host_callbacks:
        pytest.skip(f"{HERE} does not declare host_callbacks")

    def on_the_host(context: LoweringContext, x: Any) -> Any:
        return plugrt.pure_callback(lambda x: x + 3, context.result_types[0], x)

    with lowered(stablehlo_cosine=on_the_host):
        same(jit(cosine)(X), X + 3)
    same(jit(cosine)(X), np.cos(X), rtol=1e-6)


FAULTS: list[tuple[str, Any, str]] = [
    ("stablehlo.cosine", lambda context, x: 1 // 0, "raised ZeroDivisionError: .*, for 'named'"),
    ("stablehlo.cosine", lambda context: 0, "raised TypeError: .*takes 1 positional argument"),
    ("stablehlo.cosine", lambda context, x: x > 0,
     r"returned bool\[3\]; the operation gives float32\[3\]"),
    ("stablehlo.cosine", lambda context, x: (x, x), "returned .*, .*; the operation gives"),
    ("stablehlo.cosine", lambda context, x: (), "returned nothing; the operation gives"),
    ("stablehlo.cosine", lambda context, x: "x", "returned 'x'; the operation gives .*no"),
    ("stablehlo.reduce", lambda context, *x: x[0], "has a region"),
    ("stablehlo.cosin", thousandfold, "no such operation; did you mean stablehlo.cosine"),
    ("cos", thousandfold, "no such operation; did you mean stablehlo.cosine"),
    ("plugrt.linalg.qrr", thousandfold, r"plugrt's own operations are .*plugrt\.linalg\.qr, "),
    ("lax.sin", thousandfold, "no such operation; did you mean stablehlo.sin"),
    ("stablehlo.my_own", thousandfold, "those of composites, which have a dot"),
]  # fmt: skip


@behaviour(
    23,
    "a lowering that raises, returns another type, or is for no operation is named with its owner",
    jax="JAX names the exception",
)
def test_faults_of_lowerings() -> None:
    def named(x: Any) -> Any:
        return xp.sum(xp.cos(x))

    for name, rule, says in FAULTS:
        with config.override(lowerings={HERE: {name: rule}}):
            with pytest.raises(ProgramError, match=says) as error:
                jit(named)(X)
            assert f"{name}" in str(error.value)
            assert "config.lowerings" in str(error.value)
            assert repr(HERE) in str(error.value)
    same(jit(named)(X), np.cos(X).sum(), rtol=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [3, "nowhere:f", {"cpu": thousandfold}, {"cpu": {"stablehlo.cosine": 3}}, [("cpu", "a.b")],
     [("cpu", "a.b", print), ("cpu", "a.b", len)], {3: {"a.b": print}}],
    ids=["number", "no module", "no dict", "no function", "pair", "twice", "no name"],
)  # fmt: skip
def test_wrong_lowerings_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="lowerings = "):
        config.update("lowerings", wrong)


@pytest.mark.parametrize("of", ["in_shardings", "out_shardings"])
def test_programs_for_topologies_without_the_memory(of: str) -> None:
    mesh = plugrt.sharding.AbstractMesh((2,), ("x",))
    rows, pinned = (
        plugrt.sharding.NamedSharding(
            mesh, plugrt.sharding.PartitionSpec("x"), memory_kind=memory_kind
        )
        for memory_kind in ("device", "pinned_host")
    )
    x = plugrt.ShapeDtypeStruct((8,), np.float32)
    plugrt.jit(lambda x: x + 1, **{of: rows}).lower(x).compile(topology="numpy:2")
    lowered = plugrt.jit(lambda x: x + 1, **{of: pinned}).lower(x)
    with pytest.raises(plugrt.errors.Unimplemented, match="in the memory 'pinned_host'"):
        lowered.compile(topology="numpy:2")


def test_programs_for_topologies() -> None:
    """Programs for a plugin's topology get that plugin's lowerings, whatever devices are here."""
    jitted = jit(lambda x: lax.platform_dependent(cosine(x), numpy=lax.sqrt, default=lax.sin))
    target = plugrt.topology("numpy:2")
    with config.override(lowerings={"numpy": {"stablehlo.cosine": lambda context, x: x * 77}}):
        compiled = jitted.lower(X).compile(topology=target)
    text = str(parse(compiled.program.code))
    assert "7.700000e+01" in text
    assert "stablehlo.sqrt" in text
    assert "stablehlo.sine" not in text
