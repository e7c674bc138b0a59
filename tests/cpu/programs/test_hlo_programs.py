"""Programs in HLO are run: results of `xla_computation`, as text and bytes, and XLA's dumps."""

from __future__ import annotations

import pickle
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import ProgramError, Unimplemented, UnknownPlatform
from plugrt.interface import Program
from plugrt.programs.hlo_programs import find_module
from plugrt.wire import hlo_proto
from plugrt.wire.protobuf import message, varint
from support.distributions import run_python

TABLE = np.arange(100, dtype=np.float32)
F32 = np.float32
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "two": (lambda x, y: x @ y + 1, (np.ones((2, 3), F32), np.full((3, 2), 2, F32))),
    "results": (lambda x: (x * 2, x.sum(), x > 1), (np.arange(3, dtype=F32),)),
    "none": (lambda: xp.ones((2, 2), dtype=xp.int8), ()),
    "scalar": (lambda x: x + 1, (np.int32(4),)),
    "dtypes": (
        lambda a, b, c: (a + 1, ~b, lax.conj(c)),
        (np.ones((0, 3), np.float16), np.array([True, False]), np.array([1 + 2j], np.complex64)),
    ),
    "constants": (lambda x: x + TABLE, (np.ones(100, F32),)),
    "loop": (lambda x: lax.fori_loop(0, 5, lambda i, v: v * 2, x), (np.arange(4, dtype=F32),)),
    "calls": (lambda x: plugrt.jit(lambda y: xp.sort(y))(x), (np.array([3, 1, 2], F32),)),
    "many": (lambda *xs: sum(xs), tuple(np.float32(i) for i in range(120))),
}
FORMS: dict[str, Callable[[Any], Any]] = {
    "computation": lambda c: c,
    "bytes": lambda c: c.as_serialized_hlo_module_proto(),
    "view": lambda c: memoryview(c.as_serialized_hlo_module_proto()),
    "dump": lambda c: message(1, c.as_serialized_hlo_module_proto()),
    "dump with buffers": lambda c: message(1, c.as_serialized_hlo_module_proto()) + message(3, b""),
    "text": lambda c: c.as_hlo_text(print_large_constants=True),
    "commented text": lambda c: "// a dump\n\n" + c.as_hlo_text(True),
    "bytes of text": lambda c: c.as_hlo_text(True).encode(),
    "module": lambda c: c.as_hlo_module(),
}


@pytest.fixture(autouse=True)
def _takes_hlo() -> None:
    if "hlo" not in plugrt.get_backend().capabilities.program_formats:
        pytest.skip("the backend takes no HLO")


@pytest.mark.parametrize(
    ("form", "tupled"), [*((form, False) for form in FORMS), ("bytes", True), ("text", None)]
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hlo_runs_as_the_function_does(name: str, form: str, tupled: bool | None) -> None:
    """Earlier, HLO was refused everywhere: the error was that it is no StableHLO."""
    function, arguments = FUNCTIONS[name]
    computation = plugrt.xla_computation(function, tuple_args=tupled)(*arguments)
    program = plugrt.load_program(FORMS[form](computation))
    assert (program.format, program.name) == ("hlo", computation.name())
    compiled = plugrt.compile(FORMS[form](computation))
    assert compiled.input_types is not None
    shapes = [(t.shape, t.dtype) for t in compiled.input_types]
    assert shapes == [(np.shape(a), np.asarray(a).dtype) for a in arguments]
    expected = plugrt.jit(function)(*arguments)
    wanted, found = plugrt.tree.leaves(expected), plugrt.tree.leaves(compiled(*arguments))
    assert len(wanted) == len(found)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_files_have_their_own_names(tmp_path: Path) -> None:
    function, arguments = FUNCTIONS["two"]
    computation = plugrt.xla_computation(function)(*arguments)
    (tmp_path / "first.hlo").write_text(computation.as_hlo_text())
    (tmp_path / "second.pb").write_bytes(computation.as_serialized_hlo_module_proto())
    for name in ("first.hlo", "second.pb"):
        assert plugrt.load_program(tmp_path / name).name == name.partition(".")[0]
        assert plugrt.load_program(tmp_path / name, name="mine").name == "mine"


def test_wrong_arguments_are_refused_by_the_program_s_own_types() -> None:
    function, arguments = FUNCTIONS["two"]
    compiled = plugrt.compile(plugrt.xla_computation(function)(*arguments))
    with pytest.raises(plugrt.errors.ArgumentMismatch):
        compiled(arguments[0])
    with pytest.raises(plugrt.errors.ArgumentMismatch, match="int32"):
        compiled(arguments[0], arguments[1].astype(np.int32))


TEXT = """HloModule named{more}

ENTRY main {{
  p = {kind} parameter(0)
  ROOT r = {body}
}}
"""


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({"body": "f32[3] add(p, q)"}, ("5:2", "instruction does not exist: q")),
        ({"body": "f32[3] nosuch(p)"}, ("5:", "nosuch")),
        ({"body": "f32[100] constant({...})"}, ("large constants", "print_large_constants=True")),
        ({"more": ", num_partitions=4"}, ("several devices (num_partitions=4)",)),
        ({"more": ", is_scheduled=false, replica_count=2"}, ("(replica_count=2)",)),
        ({"kind": "(f32[3], (f32[2]))"}, ("neither arrays nor one tuple of arrays",)),
        ({"kind": "token[]", "body": "token[] after-all(p)"}, ("neither arrays nor one tuple",)),
    ],
)  # fmt: skip
def test_text_that_cannot_be_run_is_refused_by_name(
    fields: dict[str, str], facts: tuple[str, ...]
) -> None:
    usual = {"more": "", "kind": "f32[3]", "body": "f32[3] constant({1, 2, 3})"}
    with pytest.raises(ProgramError) as error:
        plugrt.compile(TEXT.format(**(usual | fields)))
    for fact in facts:
        assert fact in str(error.value)
    plugrt.compile(TEXT.format(**usual | {"more": ", replica_count=1, num_partitions=1"}))


def test_a_syntax_error_has_a_line_and_a_column() -> None:
    with pytest.raises(ProgramError) as error:
        plugrt.load_program(TEXT.format(more="", kind="f32[3]", body="f32[3] add(p, q)"))
    assert (error.value.line, error.value.column is not None) == (5, True)


def serialized(name: str) -> bytes:
    """Returns the ``HloModuleProto`` of a function."""
    function, arguments = FUNCTIONS[name]
    code: bytes = plugrt.xla_computation(function)(*arguments).as_serialized_hlo_module_proto()
    return code


def altered(code: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yields copies with one to three random bytes."""
    chance = random.Random(seed)
    for _ in range(count):
        changed = bytearray(code)
        for _ in range(chance.choice((1, 1, 2, 3))):
            changed[chance.randrange(len(code))] = chance.randrange(256)
        yield bytes(changed)


DUMPED = {"module": bytes, "dump": lambda code: message(1, code) + message(3, b"\x08\x01")}
NAMED = 50
"""A truncated module of this length has its name, so that it is recognised."""


@pytest.mark.parametrize("form", DUMPED)
@pytest.mark.parametrize("name", ["results", "loop"])
def test_a_module_that_is_cut_is_refused_with_its_damage(name: str, form: str) -> None:
    """Earlier, the error was "neither StableHLO text nor MLIR bytecode, no HLO and no export"."""
    code = DUMPED[form](serialized(name))
    whole = find_module(code)
    for end in range(len(code)):
        try:
            program = plugrt.load_program(code[:end])
        except ProgramError as error:
            damaged = "a serialised HLO module that is damaged: " in str(error)
            if end >= NAMED and not damaged:
                pytest.fail(f"cut at {end}: {error}")
        else:  # the cut removed only optional fields
            assert whole is not None
            assert program.code == whole[: len(program.code)], end
            assert len(program.code) > 0.95 * len(whole)


@pytest.mark.parametrize("name", ["results", "loop", "calls"])
def test_altered_bytes_are_refused_or_read(name: str) -> None:
    """By the reader of programs, and by the readers of a library's optimised program."""
    code, refused = serialized(name), 0
    for content in altered(code, 400, seed=7):
        for read in (
            hlo_proto.flat_parameters, hlo_proto.parameter_types, hlo_proto.result_types,
            hlo_proto.parameter_layouts, hlo_proto.output_layouts, hlo_proto.donated_parameters,
            hlo_proto.parameter_shardings, hlo_proto.output_shardings,
        ):  # fmt: skip
            try:
                read(content)
            except (ValueError, KeyError) as error:
                assert type(error) in (ValueError, KeyError), error  # noqa: PT017
        try:
            program = plugrt.load_program(content)
        except ProgramError:
            refused += 1
        else:
            assert program.format == "hlo"
    assert refused > 100


WIRE_TYPES = {0: b"\x05", 1: b"12345678", 5: b"1234"}


@pytest.mark.parametrize(
    ("number", "wire_type"),
    [*((number, form) for number in (1, 3, 4) for form in (0, 1, 5)), (6, 1), (6, 5)],
)
def test_a_field_of_a_wrong_wire_type_is_named(number: int, wire_type: int) -> None:
    """Earlier, it was skipped, or read as a packed number."""
    code = serialized("results") + varint(number << 3 | wire_type) + WIRE_TYPES[wire_type]
    says = f"damaged: field {number} of a protocol buffer has the wire type {wire_type}"
    with pytest.raises(ProgramError, match=says):
        plugrt.load_program(code)


COMPILE = """
import pickle, sys, plugrt
refused = 0
for content in pickle.load(open(sys.argv[1], "rb")):
    try:
        plugrt.compile(content)
    except plugrt.errors.PlugrtError:
        refused += 1
print(refused)
"""


def test_altered_programs_do_not_end_the_process(tmp_path: Path) -> None:
    """Earlier, XLA ended it over a tuple's operands, or a signature, that were inconsistent."""
    code = serialized("results")
    module = find_module(code)
    assert module is not None
    changes = [
        (b"\xa2\x02\x0f", b"\xe2\x02\x0f"),  # moves the tuple's operands to another field
        (b"\x22\x10\x10\x0b", b"\x20\x10\x10\x0b"),  # so it does with the signature's results
    ]
    damaged = [content for old, new in changes for content in replaced(code, old, new)]
    assert len(damaged) >= len(changes)
    file = tmp_path / "contents"
    file.write_bytes(pickle.dumps([*damaged, *altered(code, 60, seed=11)]))
    done = run_python(COMPILE, arguments=(str(file),), JAX_PLATFORMS="cpu")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= len(damaged)


def replaced(code: bytes, old: bytes, new: bytes) -> Iterator[bytes]:
    """Yields a copy for each occurrence of ``old``, with ``new`` in its place."""
    for found in re.finditer(re.escape(old), code):
        yield code[: found.start()] + new + code[found.end() :]


@pytest.mark.parametrize(
    "content", [b"\n", b"\n\x00", message(1, b""), message(1, b"name"), b"\n\n"]
)
def test_other_bytes_are_no_module(content: bytes) -> None:
    assert find_module(content) is None


def test_a_backend_without_hlo_refuses_it_by_name_with_the_cure() -> None:
    try:
        plugrt.get_backend("numpy")
    except UnknownPlatform:
        pytest.skip("no numpy backend here")
    function, arguments = FUNCTIONS["two"]
    computation = plugrt.xla_computation(function)(*arguments)
    with pytest.raises(Unimplemented) as error:
        plugrt.compile(computation, backend="numpy")
    for fact in ("'numpy'", "takes programs in 'mlir'", "'hlo'", "backend='cpu'", "lower(x)"):
        assert fact in str(error.value)
    with pytest.raises(Unimplemented, match="'hlo_with_config'"):
        plugrt.compile(Program(b"x", "hlo_with_config"))
