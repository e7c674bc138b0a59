"""Layouts: `Format` in and out of `device_put`, `jit` and compiled programs, beside JAX."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from plugrt import ShapeDtypeStruct, device_put, devices, jit
from plugrt import array_api as xp
from plugrt.errors import (
    ArgumentMismatch,
    ArgumentTypeError,
    InvalidArgument,
    StructureError,
    Unimplemented,
)
from plugrt.interface import Layout, TensorType
from plugrt.layout import Format
from plugrt.programs.compiled_program import compile as compile_program
from plugrt.sharding import SingleDeviceSharding
from support.behaviour import behaviour
from support.jax_oracle import jax
from support.platforms import capabilities

pytestmark = pytest.mark.skipif(not capabilities().layouts, reason="the platform has no layouts")

X = np.arange(12, dtype=np.float32).reshape(3, 4)
TURNED = Layout((1, 0))
AUTO = Format(Layout.AUTO)


def here() -> SingleDeviceSharding:
    return SingleDeviceSharding(devices()[0])


def turned() -> Format:
    return Format(TURNED, here())


def order(x: Any) -> tuple[int, ...]:
    layout = x.layout if isinstance(x, Format) else x.format.layout
    assert isinstance(layout, Layout)
    return layout.major_to_minor


def jax_format(order: tuple[int, ...] | None) -> Any:
    from jax.experimental.layout import Format as JaxFormat
    from jax.experimental.layout import Layout as JaxLayout

    if order is None:
        return JaxFormat(JaxLayout.AUTO)
    return JaxFormat(JaxLayout(order), jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0]))


def jax_order(x: Any) -> tuple[int, ...]:
    found: tuple[int, ...] = getattr(x, "format", x).layout.major_to_minor
    return found


def test_layouts_are_written_as_jax_writes_them() -> None:
    from jax.experimental.layout import Layout as JaxLayout

    for arguments in (((1, 0),), ((1, 0), ()), ([0, 1], [[2, 2]]), ((1, 0), ((8, 128),), 4)):
        ours, theirs = Layout(*arguments), JaxLayout(*arguments)
        assert repr(ours) == repr(theirs)
        assert hash(ours) == hash(Layout(*arguments))
    assert Layout((1, 0)) != Layout((1, 0), ())
    assert repr(Format(Layout.AUTO)) == "Format(layout=AUTO, sharding=None)"
    assert pickle.loads(pickle.dumps(Layout.AUTO)) is Layout.AUTO


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("{}", Layout((), ())),
        ("{0,1}", Layout((1, 0), ())),
        ("{1,0:T(8,128)(2,1)}", Layout((0, 1), ((8, 128), (2, 1)))),
        ("{0,1:T(4)E(4)}", Layout((1, 0), ((4,),), 4)),
        ("{1,0:T(8,128)S(5)}", Layout((0, 1), ((8, 128),))),
    ],
)
def test_xlas_text_of_a_layout_is_read(text: str, layout: Layout) -> None:
    assert Layout.from_text(text) == layout
    assert Layout.from_text(layout.text) == layout


@pytest.mark.parametrize("text", ["", "{a}", "1,0", "{1,0:T(*)}", "{0,0}", "{0}}"])
def test_another_text_is_no_layout(text: str) -> None:
    with pytest.raises(InvalidArgument, match="layout"):
        Layout.from_text(text)


@pytest.mark.parametrize("order", [(0, 0), (0, 2), (-1, 0), 3, "ab", (0.5,)])
def test_an_order_names_each_dimension_once(order: Any) -> None:
    with pytest.raises((InvalidArgument, TypeError), match="major_to_minor"):
        Layout(order)


def test_a_format_takes_a_layout_and_a_sharding() -> None:
    with pytest.raises(InvalidArgument, match="needs a sharding"):
        Format(TURNED)
    with pytest.raises(TypeError, match="layout is a"):
        Format("{0,1}")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sharding is a sharding"):
        Format(TURNED, devices()[0])  # type: ignore[arg-type]
    assert Format(TURNED, here()) == Format(Layout([1, 0]), here())  # type: ignore[arg-type]


@behaviour(4, "an array can be put in any order of dimensions, and read as it was")
@pytest.mark.parametrize("order_", [*itertools.permutations(range(3))])
def test_every_order_of_three_dimensions(order_: tuple[int, ...]) -> None:
    x = np.random.default_rng(sum(order_)).normal(size=(2, 3, 4)).astype(np.float32)
    theirs = jax.device_put(x, jax_format(order_))
    for source in (x, device_put(x)):
        y = device_put(source, Format(Layout(order_), here()))
        assert order(y) == jax_order(theirs) == order_
        np.testing.assert_array_equal(y, theirs)
        np.testing.assert_array_equal(y + 1, theirs + 1)
        assert y.committed


@behaviour(4, "`device_put` keeps the layout of an array on its way to another device")
def test_moves_and_copies_keep_the_layout() -> None:
    y = device_put(X, turned())
    theirs = jax.device_put(X, jax_format((1, 0)))
    assert device_put(y, turned()) is y
    for to in (None, here(), devices()[0]):
        assert device_put(y, to).unsafe_buffer_pointer() == y.unsafe_buffer_pointer()
    copy = device_put(y, may_alias=False)
    assert order(copy) == jax_order(jax.device_put(theirs, may_alias=False)) == (1, 0)
    np.testing.assert_array_equal(copy, X)
    if len(devices()) > 1:
        moved = device_put(y, devices()[1])
        assert (order(moved), moved.device) == ((1, 0), devices()[1])
        np.testing.assert_array_equal(moved, X)
        back = device_put(moved, Format(Layout((0, 1)), here()))
        assert (order(back), back.device) == ((0, 1), devices()[0])
        np.testing.assert_array_equal(back, X)
    assert order(y.addressable_shards[0].data) == (1, 0)
    donated = device_put(device_put(X, turned()), Format(Layout((0, 1)), here()), donate=True)
    np.testing.assert_array_equal(donated, X)


def test_a_deleted_array_has_no_layout() -> None:
    y = device_put(X, turned())
    y.delete()
    assert y.format == Format(None, here())


@behaviour(4, "a layout that an array cannot have is refused, and the message says why")
def test_device_put_refuses_impossible_layouts() -> None:
    with pytest.raises(InvalidArgument, match="AUTO leaves it to a compiler"):
        device_put(X, AUTO)
    with pytest.raises(InvalidArgument, match=r"orders 3 dimensions.*has 2"):
        device_put(X, Format(Layout((0, 1, 2)), here()))
    with pytest.raises(Unimplemented, match="no tiles"):
        device_put(X, Format(Layout((1, 0), ((2, 2),)), here()))
    kind = next((m.kind for m in devices()[0].memories() if m.kind == "pinned_host"), None)
    if kind:
        there = SingleDeviceSharding(devices()[0], memory_kind=kind)
        with pytest.raises(Unimplemented, match="default memory"):
            device_put(X, Format(TURNED, there))


@behaviour(4, "`jit` accepts a Format for each argument and each result")
def test_layouts_of_arguments_and_results() -> None:
    def f(a: Any, b: Any) -> Any:
        return a.T @ b, {"k": a + b}

    wanted = {"in_shardings": (turned(), None), "out_shardings": (turned(), {"k": None})}
    asked = {"in_shardings": (jax_format((1, 0)), None),
             "out_shardings": (jax_format((1, 0)), {"k": None})}  # fmt: skip
    product, rest = jit(f, **wanted)(device_put(X, turned()), X)
    theirs, others = jax.jit(f, **asked)(jax.device_put(X, jax_format((1, 0))), X)
    np.testing.assert_allclose(product, theirs)
    np.testing.assert_array_equal(rest["k"], others["k"])
    assert (order(product), order(rest["k"])) == (jax_order(theirs), jax_order(others["k"]))
    lowered = jit(f, **wanted).lower(X, X).as_text()
    assert lowered.count('mhlo.layout_mode = "{0,1}"') == 2


@behaviour(4, "a committed argument keeps its layout, and results have the default layout")
def test_arguments_are_taken_as_they_lie() -> None:
    y, theirs = device_put(X, turned()), jax.device_put(X, jax_format((1, 0)))
    for f in (lambda a: a * 2, lambda a: (a @ a.T) + 1, lambda a: a.T):
        ours, expected = jit(f)(y), jax.jit(f)(theirs)
        np.testing.assert_allclose(ours, expected)
        assert order(ours) == jax_order(expected)
    np.testing.assert_array_equal(y + device_put(X), X + X)
    np.testing.assert_array_equal(xp.sum(y, axis=0), X.sum(axis=0))


@behaviour(
    4,
    "a result that is an argument keeps its layout",
    jax="JAX copies it to the default layout; here results that are arguments share their memory",
)
def test_a_result_that_is_an_argument() -> None:
    y = device_put(X, turned())
    same, other = jit(lambda a, b: (a, b + 1))(y, X)
    assert order(same) == (1, 0)
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(other, X + 1)
    assert order(jit(lambda a: a, out_shardings=Format(Layout((0, 1)), here()))(y)) == (0, 1)
    assert order(jit(lambda: X, out_shardings=turned())()) == (1, 0)
    assert order(jit(lambda a: a, out_shardings=turned())(X)) == (1, 0)


@behaviour(4, "`Layout.AUTO` is chosen by the compiler, and read back from the compiled program")
def test_layouts_that_the_compiler_chooses() -> None:
    def f(a: Any, b: Any) -> Any:
        return a.T, a + b

    aval = ShapeDtypeStruct((3, 4), np.float32)
    compiled = jit(f, in_shardings=AUTO, out_shardings=AUTO).lower(aval, aval).compile()
    (ins, keywords), outs = compiled.input_formats, compiled.output_formats
    assert keywords == {}
    for x in (ins, outs):
        assert all(isinstance(each.layout, Layout) for each in x)
    placed = [device_put(X, each) for each in ins]
    results = compiled(*placed)
    assert [order(r) for r in results] == [order(each) for each in outs]
    np.testing.assert_array_equal(results[0], X.T)
    np.testing.assert_array_equal(results[1], X + X)
    np.testing.assert_array_equal(compiled(X, X)[0], X.T)
    if devices()[0].platform == "cpu" and not hasattr(devices()[0].client, "library"):
        theirs = jax.jit(f, in_shardings=jax_format(None), out_shardings=jax_format(None))
        expected = theirs.lower(X, X).compile()
        assert [order(x) for x in ins] == [jax_order(x) for x in expected.input_formats[0]]
        assert [order(x) for x in outs] == [jax_order(x) for x in expected.output_formats]


@behaviour(4, "an argument in another layout than jit or a compiled program takes is named")
def test_mismatches_are_named() -> None:
    y, plain = device_put(X, turned()), device_put(X, devices()[0])
    takes_turned = jit(lambda a: a * 2, in_shardings=turned())
    with pytest.raises(InvalidArgument, match=r"argument a has the layout Layout.*\(0, 1\)"):
        takes_turned(plain)
    with pytest.raises(ValueError, match="does not match the layout"):
        jax.jit(lambda a: a * 2, in_shardings=jax_format((1, 0)))(
            jax.device_put(X, jax.devices("cpu")[0])
        )
    with pytest.raises(InvalidArgument, match=r"argument a .*Layout\.AUTO.*ShapeDtypeStruct"):
        jit(lambda a: a * 2, in_shardings=AUTO)(y)
    compiled = jit(lambda a: a * 2).lower(X).compile()
    with pytest.raises(
        ArgumentMismatch, match=r"argument a: takes .* default.*in the layout \{0,1\}"
    ):
        compiled(y)
    with pytest.raises(ValueError, match="disagree with the layouts"):
        jax.jit(lambda a: a * 2).lower(X).compile()(jax.device_put(X, jax_format((1, 0))))
    # An uncommitted argument is put in the program's layout.
    for x in (X, device_put(X)):
        np.testing.assert_array_equal(takes_turned(x), X * 2)
        np.testing.assert_array_equal(takes_turned.lower(X).compile()(x), X * 2)


def test_formats_that_do_not_fit() -> None:
    with pytest.raises(InvalidArgument, match="within a Format"):
        jit(lambda a: a, in_shardings=TURNED)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="orders 3 dimensions"):
        jit(lambda a: a, in_shardings=Format(Layout((0, 1, 2)), here()))(X)
    with pytest.raises(StructureError, match=r"out_shardings.*not a pytree prefix of the results"):
        jit(lambda a: (a, a + 1), out_shardings=(turned(),))(X)
    with pytest.raises(StructureError, match=r"in_shardings.*not a pytree prefix"):
        jit(lambda a: a + 1, in_shardings=(turned(), turned()))(X)
    with pytest.raises(StructureError, match="no keywords"):
        jit(lambda a, b: a + b, in_shardings=turned())(X, b=X)


@behaviour(4, "a donated argument may have another layout than the result")
def test_donation_across_layouts() -> None:
    for out in (turned(), None):
        y = device_put(X, turned())
        made = jit(lambda a: a + 1, donate_argnums=0, out_shardings=out)(y)
        np.testing.assert_array_equal(made, X + 1)
        assert order(made) == ((1, 0) if out else (0, 1))
        assert y.is_deleted()


def test_a_loaded_program_says_how_its_arguments_lie() -> None:
    text = """func.func @main(%x: tensor<3x4xf32> {mhlo.layout_mode = "{0,1}"})
      -> (tensor<3x4xf32> {mhlo.layout_mode = "{0,1}"}) {
        %y = stablehlo.add %x, %x : tensor<3x4xf32>
        return %y : tensor<3x4xf32>
      }"""
    program = compile_program(text)
    for x in (X, device_put(X), device_put(X, turned())):
        y = program(x)
        np.testing.assert_array_equal(y, X + X)
        assert order(y) == (1, 0)


def test_the_client_says_what_the_default_is() -> None:
    client = devices()[0].client
    for shape in ((), (3,), (3, 4), (2, 3, 4)):
        default = client.default_layout(TensorType(shape, np.dtype(np.float32)))
        assert default == device_put(np.zeros(shape, np.float32)).format.layout
    wrong: Any = "f32[3]"
    with pytest.raises(ArgumentTypeError):
        client.default_layout(wrong)
