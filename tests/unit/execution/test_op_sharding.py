"""Shardings that compilers report, converted to tilings and to specs over a mesh."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jaxlib import xla_client

from plugrt.errors import InvalidReply, ShapeError, Unimplemented
from plugrt.execution.placement.chosen_shardings import find_spec
from plugrt.execution.shardings.op_sharding import (
    read_op_sharding,
    show_op_sharding,
    write_op_sharding,
)
from plugrt.execution.shardings.tiling import Tiling
from plugrt.sharding import GSPMDSharding, Mesh, NamedSharding
from plugrt.sharding import PartitionSpec as P
from plugrt.wire.protobuf import integer, message, varint
from support.fake_client import FakeClient

SIZES = {"x": 2, "y": 3, "z": 1, "w": 2}
SPECS = [
    P(), P("x"), P(None, "y"), P("w", ("x", "y")), P(("y", "x"), "w"), P(("w", "y", "x")),
    P("z", "x"), P(("x", "w"), None, "y"),
]  # fmt: skip


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return Mesh(np.array(FakeClient(count=12).devices()).reshape(*SIZES.values()), [*SIZES])


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_op_shardings_are_written_and_read(mesh: Mesh, spec: P) -> None:
    sharding = NamedSharding(mesh, spec)
    for ndim in range(len(spec), 4):
        tiling = sharding.tiling(ndim)
        assert read_op_sharding(write_op_sharding(tiling), ndim, 12) == tiling
        found = find_spec(tiling, mesh)
        assert found is not None
        assert NamedSharding(mesh, found).is_equivalent_to(sharding, ndim)
        assert "z" not in found.axis_names  # divides nothing
        copy = GSPMDSharding.from_tiling(mesh.flat_devices, tiling)
        assert copy.is_equivalent_to(sharding, ndim)
        shape = (12, 12, 12)[:ndim]
        assert copy.devices_indices_map(shape) == sharding.devices_indices_map(shape)


def test_tilings_that_no_axes_express(mesh: Mesh) -> None:
    half = tuple(range(6)) * 2  # six parts along one dimension, in another order than the axes
    assert find_spec(Tiling((6,), half[::-1]), mesh) is None
    assert find_spec(Tiling((12,), tuple(np.random.default_rng(0).permutation(12))), mesh) is None
    diagonal = Tiling((2, 2), tuple([0] * 6 + [3] * 6))
    assert find_spec(diagonal, mesh) is None


def packed(*values: int) -> bytes:
    return b"".join(map(varint, values))


def other(*parts: bytes) -> bytes:
    return integer(1, 3) + b"".join(parts)


def test_forms_that_xla_writes() -> None:
    # {devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}
    iota = other(message(3, packed(2, 1, 2)), message(9, packed(2, 2)), message(10, packed(1, 0)),
                 integer(6, 1))  # fmt: skip
    assert read_op_sharding(iota, 2, 4) == Tiling((2, 1), (0, 1, 0, 1))
    listed = other(message(3, packed(2, 2)), message(4, packed(3, 1, 2, 0)))
    assert read_op_sharding(listed, 2, 4) == Tiling((2, 2), (3, 1, 2, 0))
    last = other(message(3, packed(2, 2)), message(9, packed(4)), message(8, packed(0)))
    assert read_op_sharding(last, 1, 4) == Tiling((2,), (0, 0, 1, 1))


@pytest.mark.parametrize(
    ("message_", "text"),
    [
        (b"", "{replicated}"),
        (integer(1, 1) + message(4, packed(2)), "{maximal device=2}"),
        (integer(1, 4), "{manual}"),
        (other(message(3, packed(2, 2)), message(4, packed(3, 1, 2, 0))), "{devices=[2,2]3,1,2,0}"),
        (other(message(3, packed(4)), message(9, packed(4)), message(10, packed(0))),
         "{devices=[4]<=[4]}"),
        (other(message(3, packed(2, 1, 2)), message(9, packed(2, 2)), message(10, packed(1, 0)),
               integer(6, 1)), "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"),
        (other(message(3, packed(1, 2, 2)), message(9, packed(4)), message(10, packed(0)),
               message(8, packed(4, 0))),
         "{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}"),
        (b"\xff", "b'\\xff'"),
    ],
)  # fmt: skip
def test_the_text_is_hlos(message_: bytes, text: str) -> None:
    assert show_op_sharding(message_) == text
    if message_ and message_ != b"\xff":
        theirs = xla_client.OpSharding()
        theirs.ParseFromString(message_)
        assert str(xla_client.HloSharding.from_proto(theirs)) == text


WRONG: dict[str, tuple[bytes, type[Exception], str]] = {
    "maximal": (integer(1, 1) + message(4, packed(2)), Unimplemented, "maximal"),
    "manual": (integer(1, 4), Unimplemented, "manual"),
    "in part manual": (
        other(message(3, packed(2, 2)), message(9, packed(4)), message(8, packed(4))),
        Unimplemented, "in part manual",
    ),
    "of other devices": (
        other(message(3, packed(2)), message(4, packed(0, 1))), InvalidReply, r"\[2\] parts",
    ),
    "a device twice": (
        other(message(3, packed(4)), message(4, packed(0, 1, 1, 3))), InvalidReply, "names the dev",
    ),
    "a wrong order": (
        other(message(3, packed(4)), message(9, packed(2, 2)), message(10, packed(1, 1))),
        InvalidReply, "does not fit 4 devices",
    ),
    "cut short": (b"\x1a\x05\x01", InvalidReply, "not an xla.OpSharding"),
    "fewer dimensions": (
        other(message(4, packed(0, 1, 2, 3))), ShapeError, "of 0 dimensions cannot divide",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_messages_that_are_none(name: str) -> None:
    content, error, said = WRONG[name]
    with pytest.raises(error, match=said):
        read_op_sharding(content, 1, 4)


def test_random_bytes_end_in_an_error_or_a_tiling() -> None:
    random = np.random.default_rng(1)
    start = other(message(3, packed(2, 1, 2)), message(9, packed(2, 2)), message(10, packed(1, 0)))
    for _ in range(500):
        changed = bytearray(start)
        changed[random.integers(len(changed))] = random.integers(256)
        try:
            tiling = read_op_sharding(bytes(changed[: random.integers(1, 30)]), 2, 4)
        except (InvalidReply, ShapeError, Unimplemented):
            continue
        assert (len(tiling.parts), len(tiling.tiles)) == (2, 4)


def test_a_sharding_without_names() -> None:
    devices = FakeClient(count=4).devices()
    sharding = GSPMDSharding(devices, write_op_sharding(Tiling((2, 2), (0, 1, 2, 3))))
    assert sharding.shard_shape((4, 6)) == (2, 3)
    assert GSPMDSharding.get_replicated(devices).is_fully_replicated
    for whole in (b"\x08\x00", b"\x08\x03\x1a\x03\x01\x01\x04\x22\x04\x00\x01\x02\x03\x30\x01"):
        assert GSPMDSharding(devices, whole).is_fully_replicated, whole
        assert GSPMDSharding(devices, whole).shard_shape((4, 6)) == (4, 6)
    assert not sharding.is_fully_replicated
    assert sharding == GSPMDSharding(devices, sharding.op_sharding)
    assert sharding != GSPMDSharding.get_replicated(devices)
    assert sharding.with_memory_kind("host").memory_kind == "host"
    with pytest.raises(ShapeError, match="sharding of 2 dimensions cannot divide an array of 1"):
        sharding.shard_shape((4,))
    wrong: list[tuple[Any, Any, str]] = [
        ([], b"", "at least one"), (devices[:1] * 2, b"", "twice"), (devices, "{manual}", "xla"),
    ]  # fmt: skip
    for of, content, said in wrong:
        with pytest.raises(ValueError, match=said):
            GSPMDSharding(of, content)
