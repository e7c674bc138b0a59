"""Programs that attack the NumPy backend, which generates Python source from programs."""

from __future__ import annotations

import gc
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.errors import PlugrtError, ProgramError, ResourceExhausted, Unimplemented
from plugrt.interface import CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_numpy.source import FILE, FunctionSource
from plugrt_sdk import BackendClient

TYPE = "tensor<2xf32>"
ONE_TWO = np.float32([1, 2])


def run(text: str, *arguments: Any) -> Any:
    client = BackendClient(NumpyBackend())
    [device] = client.devices()
    executable = client.compile(Program(text.encode()), CompileOptions())
    puts = [[client.buffer_from_host(np.asarray(a), device)] for a in arguments]
    return executable.execute(puts)[0][0].to_host()


def main(body: str, functions: str = "", result: str = TYPE) -> str:
    return f"""func.func public @main(%a: {TYPE}) -> {result} {{
  {body}
  return %0 : {result} }}
{functions}"""


PLACES: dict[str, Callable[[str], str]] = {
    "file of a location": lambda t: main(f'%0 = stablehlo.add %a, %a : {TYPE} loc("{t}":1:1)'),
    "name of a location": lambda t: main(f'%0 = stablehlo.add %a, %a : {TYPE} loc("{t}")'),
    "fused location": lambda t: main(
        f'%0 = stablehlo.add %a, %a : {TYPE} loc(fused<"{t}">["{t}", callsite("{t}" at "{t}")])'
    ),
    "function": lambda t: main(
        f'%0 = func.call @"{t}"(%a) : ({TYPE}) -> {TYPE}',
        f"""func.func private @"{t}"(%a: {TYPE}) -> {TYPE} {{
            %0 = stablehlo.add %a, %a : {TYPE}
            return %0 : {TYPE} }}""",
    ),
    "module": lambda t: f'module @"{t}" {{ {main(f"%0 = stablehlo.add %a, %a : {TYPE}")} }}',
    "attribute": lambda t: main(f'%0 = stablehlo.add %a, %a {{note = "{t}"}} : {TYPE}'),
    "configuration of a custom call": lambda t: main(
        f"""%1 = stablehlo.custom_call @Sharding(%a) {{backend_config = "{t}"}} : ({TYPE}) -> {TYPE}
        %0 = stablehlo.add %1, %1 : {TYPE}"""
    ),
}
ENDS = {
    "newline": r"\0A", "return": r"\0D", "both": r"\0D\0A", "form feed": r"\0C", "NUL": r"\00",
    "NEL": r"\C2\85", "line separator": r"\E2\80\A8", "quotes": r"\22\22\22'''", "colon": "): pass",
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_text_of_a_program_is_never_run(place: str, tmp_path: Path) -> None:
    mark = tmp_path / "was-here"
    code = f"__import__('pathlib').Path('{mark}').touch()"
    for what, end in ENDS.items():
        text = PLACES[place](f"x{end}    {code}{end}    #")
        np.testing.assert_array_equal(run(text, ONE_TWO), 2 * ONE_TWO, what)
        assert not mark.exists(), what


@pytest.mark.parametrize(
    "name", ["def", "None", "__import__", "__builtins__", "run", "active", "v0", "f1", "", "a b"]
)
def test_functions_may_be_called_what_python_keeps_for_itself(name: str) -> None:
    np.testing.assert_array_equal(run(PLACES["function"](name), ONE_TWO), 2 * ONE_TWO)


@pytest.mark.parametrize("text", ["a\rb()", "a\n    b()", "a\x00", "\u2028b()", "\udc80"])
def test_comments_and_names_stay_on_their_line(text: str) -> None:
    source = FunctionSource(text, ["x"])
    source.add("y = x", text)
    source.add("return y", "")
    assert source.compile()(3) == 3  # a name in the comment would raise


def test_source_goes_with_its_function() -> None:
    source = FunctionSource("of this test", [])
    source.add("return 1", "one")
    function = source.compile()
    [name] = [file for file in linecache.cache if file.startswith(f"{FILE}of this test")]
    assert "# one" in linecache.getline(name, 2)
    del function, source
    gc.collect()
    assert name not in linecache.cache


CONSTANTS: list[tuple[str, str, Any]] = [
    ("(1.0,2.0)", "tensor<complex<f32>>", 1 + 2j),
    ("[(1.0,2.0),(0x7F800000,-3.0)]", "tensor<2xcomplex<f32>>", [1 + 2j, complex(np.inf, -3)]),
    ("7", "tensor<i4>", 7),
    ("[-8,7]", "tensor<2xi4>", [-8, 7]),
    ("1.5", "tensor<2xf8E4M3FN>", [1.5, 1.5]),
    ("0xFF", "tensor<f8E5M2>", np.nan),
    ("[0x7F,1.0]", "tensor<2xf8E4M3FN>", [np.nan, 1]),
    ("0x7FC0", "tensor<3xbf16>", [np.nan] * 3),
    ("0xFFFFFFFF", "tensor<2xf32>", [np.nan] * 2),
    ("0xFFF0000000000000", "tensor<f64>", -np.inf),
    ("18446744073709551615", "tensor<2xui64>", [2**64 - 1] * 2),
    ("-9223372036854775808", "tensor<i64>", -(2**63)),
    ("[true,false]", "tensor<2xi1>", [True, False]),
]


@pytest.mark.parametrize(("literal", "kind", "value"), CONSTANTS, ids=lambda v: str(v))
def test_constants_are_read_whatever_stands_beside_them(
    literal: str, kind: str, value: Any
) -> None:
    fake = '{a = "value = dense<(9.0,9.0)> : ", z = "<{value = dense<3> : "}'
    found = run(main(f"%0 = stablehlo.constant {fake} dense<{literal}> : {kind}", result=kind),
                ONE_TWO)  # fmt: skip
    assert str(found) == str(np.asarray(value).astype(found.dtype))


HUGE = "tensor<4294967296x4294967296xf32>"
DEEP = f"tensor<{'x'.join(['1'] * 70)}xf32>"
REFUSED: list[tuple[str, type[PlugrtError], str]] = [
    (
        f"""%c = stablehlo.constant dense<1.0> : {HUGE}
        %0 = stablehlo.add %a, %a : {TYPE}""",
        ResourceExhausted, "63 bits",
    ),
    (
        f"""%c = stablehlo.iota dim = 0 : {HUGE}
        %0 = stablehlo.add %a, %a : {TYPE}""",
        ResourceExhausted, "63 bits",
    ),
    (
        f"""%1 = stablehlo.slice %a [0:1] : ({TYPE}) -> tensor<1xf32>
        %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> {DEEP}
        %0 = stablehlo.add %a, %a : {TYPE}""",
        Unimplemented, "64 dimensions at most",
    ),
    (f"%0 = arith.addf %a, %a : {TYPE}", Unimplemented, "arith.addf"),
    ("cf.br ^next(%a : tensor<2xf32>)\n  ^next(%0: tensor<2xf32>):", Unimplemented, "cf.br"),
    (
        f'%0 = stablehlo.custom_call @"f\\FF"(%a) : ({TYPE}) -> {TYPE}', ProgramError, "not UTF-8"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "kind", "words"), REFUSED, ids=[r[2] for r in REFUSED])
def test_programs_that_cannot_run_are_refused(
    body: str, kind: type[PlugrtError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        run(main(body), ONE_TWO)


def test_elements_in_a_resource_are_refused() -> None:
    text = """module { func.func public @main() -> tensor<2xf32> {
      %0 = stablehlo.constant dense_resource<blob> : tensor<2xf32>
      return %0 : tensor<2xf32> } }
    {-# dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } } #-}"""
    with pytest.raises(Unimplemented, match=r"constant \(-:2\): its elements"):
        run(text)


def test_a_failing_operation_is_named_with_its_line() -> None:
    text = main(
        f"""%s = stablehlo.convert %a : ({TYPE}) -> tensor<2xi32>
        %1 = stablehlo.dynamic_reshape %a, %s : ({TYPE}, tensor<2xi32>) -> tensor<?x?xf32>
        %0 = stablehlo.add %a, %a : {TYPE}"""
    )
    with pytest.raises(PlugrtError, match=r"dynamic_reshape \(-:3\): cannot reshape"):
        run(text, np.float32([2, 2]))
