"""Files of ``jax.export``, read without JAX: two that were written for these tests.

`symbolic.export` is by jax 0.10.2, for cpu and tpu, of a function of ``x: float32[a,2]`` and a dict
of a scalar and an array that it does not use::

    lambda x, w: {"sum": (x * w["scale"]).sum(), "x": [x + 1, None]}

`sharded.export` is by jax 0.7.2, for 4 devices on cpu, of ``x @ y`` for ``float32[4,8]`` by rows on
a mesh of 2 x 2 and ``float32[8,4]`` by columns.
"""

from __future__ import annotations

import random
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from plugrt import load_program, tree
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    ProgramError,
    StructureError,
    Unimplemented,
)
from plugrt.execution.arrays.aval import intern_host_aval
from plugrt.execution.shardings.op_sharding import read_op_sharding
from plugrt.execution.shardings.tiling import Tiling
from plugrt.export import (
    ExportedTree,
    deserialize,
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from plugrt.wire.flatbuffers import Table, root_table
from support.behaviour import behaviour

FILE = Path(__file__).with_name("symbolic.export")
BLOB = FILE.read_bytes()
_CALLING_CONVENTION = struct.pack("<H", 10)
LEAF = ExportedTree("leaf")
SYMBOLIC: Any = ("a", 2)


def test_the_fields_of_an_export_are_read() -> None:
    found = deserialize(BLOB)
    assert found.fun_name == "<lambda>"
    assert found.in_avals == (
        intern_host_aval(SYMBOLIC, np.dtype(np.float32)),
        intern_host_aval((), np.dtype(np.float32)),
        intern_host_aval((3,), np.dtype(np.int32)),
    )
    assert [*map(str, found.out_avals)] == ["float32[]", "float32[a,2]"]
    assert found.in_tree.build() == ((0, {"scale": 1, "unused": 2}), {})
    assert found.out_tree.build() == {"sum": 0, "x": [1, None]}
    assert (found.platforms, found.nr_devices) == (("cpu", "tpu"), 1)
    assert found.module_kept_var_idx == (0, 1, 2)  # a symbolic export keeps all arguments
    assert found.calling_convention_version == 10
    assert found.is_symbolic
    assert found.needs_refinement
    assert not found.has_vjp
    assert found.mlir_module_serialized.startswith(b"ML\xefR")
    assert "ML" not in repr(found)
    assert load_program(FILE).name == "symbolic"
    assert load_program(BLOB).name == "<lambda>"
    assert load_program(found).code == found.mlir_module_serialized


def test_an_older_file_is_read() -> None:
    """The file has a type and a sharding (a message of XLA's) for each argument."""
    found = deserialize(FILE.with_name("sharded.export").read_bytes())
    types = [str(aval.tensor_type) for aval in found.in_avals]
    assert types == ["float32[4,8]", "float32[8,4]"]
    assert (found.nr_devices, found.out_shardings) == (4, (None,))
    tilings = [read_op_sharding(s, 2, 4) for s in found.in_shardings if isinstance(s, bytes)]
    assert tilings == [Tiling((2, 1), (0, 0, 1, 1)), Tiling((1, 2), (0, 1, 0, 1))]


@behaviour(
    21,
    "An export that is cut short or altered anywhere gives an error that names the damage: "
    "nothing crashes, and each small file is read quickly",
    jax="errors of Python's own, such as `struct.error`, `IndexError` and `StopIteration`",
)
def test_damaged_files_give_errors() -> None:
    """Truncations near the beginning, 1,500 random ones, and 1,500 files with altered bits."""
    generator = random.Random(21)
    end = len(BLOB) - 8  # the last bytes are padding
    for size in {*range(64), end, *(generator.randrange(end) for _ in range(1500))}:
        with pytest.raises(ProgramError):
            deserialize(BLOB[:size])
    read = 0
    for _ in range(1500):
        altered = bytearray(BLOB)
        for _ in range(generator.randrange(1, 4)):
            altered[generator.randrange(len(BLOB))] ^= 1 << generator.randrange(8)
        try:
            deserialize(altered)
        except (ProgramError, Unimplemented):
            continue
        read += 1  # most bits belong to the module, which is not read here
    assert 0 < read < 1500


def test_a_damaged_export_is_told_from_other_files() -> None:
    altered = bytearray(BLOB)
    altered[1] ^= 0x40  # a bit of the root table's offset
    with pytest.raises(ProgramError, match=r"<bytes> is an export of JAX that is damaged or cut"):
        load_program(bytes(altered))
    with pytest.raises(ProgramError, match=r"no export of JAX: it is a pickle"):
        load_program(b"\x80\x05\x95\x00\xff")
    with pytest.raises(ProgramError, match=r"<bytes> is not an export of JAX: "):
        deserialize(b"\x80\x05\x95\x00\xff")
    with pytest.raises(ArgumentTypeError, match="deserialize"):
        deserialize(None)  # type: ignore[arg-type]


def _replace_number(before: bytes, after: bytes) -> bytes:
    """Returns the file with another version of the calling convention."""
    table = root_table(BLOB)
    at: Any = table._find(14)
    assert BLOB[at : at + 2] == before
    return BLOB[:at] + after + BLOB[at + 2 :]


@behaviour(
    21,
    "An export in a version of the calling convention that is not known is refused with the "
    "versions that are, and the way out",
)
def test_other_versions_of_the_calling_convention_are_refused() -> None:
    newer = _replace_number(_CALLING_CONVENTION, struct.pack("<H", 11))
    with pytest.raises(ProgramError, match=r"version 11 .* reads 9 to 10: .* is newer.*update"):
        deserialize(newer)
    older = _replace_number(_CALLING_CONVENTION, struct.pack("<H", 8))
    with pytest.raises(ProgramError, match=r"version 8 .* is older.*export the function again"):
        deserialize(older)
    assert deserialize(_replace_number(_CALLING_CONVENTION, struct.pack("<H", 9)))


def test_arguments_that_there_are_not_are_refused() -> None:
    table = root_table(BLOB)
    at = table._buffer.follow(table._find(15)) + 4  # type: ignore[arg-type]
    assert BLOB[at : at + 6] == struct.pack("<HHH", 0, 1, 2)
    for wrong in ((0, 1, 3), (1, 0, 2)):
        with pytest.raises(ProgramError, match=r"its module takes the arguments \[.*\] of 3"):
            deserialize(BLOB[:at] + struct.pack("<HHH", *wrong) + BLOB[at + 6 :])


def test_a_buffer_cannot_stand_for_a_larger_one() -> None:
    """Each table refers to the next one twice: 2**60 tables in 1,400 bytes."""
    with pytest.raises(ValueError, match="again and again"):
        _count(root_table(_tree(60)))


def _tree(depth: int) -> bytes:
    """Returns a flatbuffer: each table's field 1 is a vector of the next table, twice."""
    fields = struct.pack("<HHHH", 8, 8, 0, 4)  # size of the vtable, of a table, offset of field 1
    buffer = bytearray(struct.pack("<I", 12) + fields)
    for level in range(depth):
        at = len(buffer)
        buffer += struct.pack("<i", at - 4)  # the offset of the vtable
        if level == depth - 1:
            buffer += struct.pack("<II", 4, 0)  # an empty vector
        else:
            # The vector, of two offsets to the table behind it.
            buffer += struct.pack("<IIII", 4, 2, 8, 4)
    return bytes(buffer)


def _count(table: Table) -> int:
    return 1 + sum(map(_count, table.tables(1)))


def test_the_tree_of_that_test_is_well_formed() -> None:
    assert _count(root_table(_tree(3))) == 7


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "0 bytes refers to byte 4"),
        (struct.pack("<I", 0), "the offset 0 at byte 0"),
        (struct.pack("<I", 400), "8 bytes|refers to byte"),
        (struct.pack("<Ii", 4, 100), "refers to byte"),
        (struct.pack("<Ii", 4, -(2**31)), "refers to byte"),
    ],
)
def test_positions_outside_of_a_buffer_are_refused(content: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        root_table(content)


class Point(NamedTuple):
    x: Any
    y: Any


class Box:
    def __init__(self, label: str, content: Any) -> None:
        self.label, self.content = label, content


def test_registered_containers_are_built() -> None:
    ordered = ExportedTree("custom", (LEAF, LEAF), (), "collections.OrderedDict", b'["z", "a"]')
    assert ordered.build() == OrderedDict(z=0, a=1)
    point = ExportedTree("custom", (LEAF, LEAF), (), "my.Point", b'["x", "y"]')
    with pytest.raises(StructureError, match=r"'my.Point'.*register_namedtuple_serialization"):
        point.build()
    assert register_namedtuple_serialization(Point, serialized_name="my.Point") is Point
    assert point.build() == Point(0, 1)
    tree.register_node(Box, lambda b: ([b.content], b.label), lambda label, c: Box(label, *c))
    register_pytree_node_serialization(
        Box,
        serialized_name="my.Box",
        deserialize_auxdata=bytes.decode,
        from_children=lambda label, children: Box(label, *children),
    )
    box = ExportedTree("custom", (ExportedTree("tuple", (LEAF, LEAF)),), (), "my.Box", b"label")
    assert (box.build().label, box.build().content) == ("label", (0, 1))
    for wrong in ("my.Point", "other"):
        with pytest.raises(ArgumentError, match=r"Point 'my.Point' already"):
            register_namedtuple_serialization(Point, serialized_name=wrong)
    broken = ExportedTree("custom", (LEAF, LEAF), (), "my.Point", b"not json")
    with pytest.raises(StructureError, match=r"cannot be made of its metadata b'not json'"):
        broken.build()


def test_wrong_registrations_are_refused() -> None:
    with pytest.raises(ArgumentError, match="takes a named tuple; got"):
        register_namedtuple_serialization(dict, serialized_name="mine")
    given: Any = {"deserialize_auxdata": bytes.decode, "from_children": None}
    with pytest.raises(ArgumentTypeError, match="are functions; got"):
        register_pytree_node_serialization(Box, serialized_name="mine", **given)
    with pytest.raises(ArgumentTypeError, match="takes a class"):
        register_pytree_node_serialization(Box(1, 2), serialized_name="mine", **given)  # type: ignore[type-var, arg-type]
