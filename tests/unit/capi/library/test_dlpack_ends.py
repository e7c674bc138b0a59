"""DLPack tensors are released once each, after any refusal, interruption or exit."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.capi import Library, create_client
from plugrt.capi.buffers import dlpack, dlpack_import
from plugrt.errors import InvalidArgument, PjrtError, PlugrtError, UnsupportedDtype
from plugrt.interface import Client, Device
from support.clib import compile_c, needs_cc
from support.distributions import run_python
from support.gpu_library import FIRST_ID, GpuLibrary
from support.watched_calls import at_calls, interrupt

ONE = np.arange(1, 1025, dtype=np.float32)


class Lent:
    """A producer's memory in a capsule, overwritten when the capsule is released."""

    def __init__(self, offset: int = 0, place: tuple[int, int] = (1, 0)) -> None:
        memory = np.zeros(ONE.nbytes + 128, np.uint8)
        start = -memory.ctypes.data % 64 + offset
        self.array = memory[start : start + ONE.nbytes].view(np.float32)
        self.array[...] = ONE
        self.releases = 0
        self.capsule = dlpack.export(
            self.array.ctypes.data, ONE.shape, ONE.dtype, place, self.array
        )
        self.managed = dlpack.read(self.capsule).managed
        inner = self.managed.deleter

        @dlpack.ffi.callback("void(*)(DLManagedTensor*)")  # type: ignore[untyped-decorator]
        def release(managed: Any) -> None:
            self.releases += 1
            self.array[...] = 0
            if self.releases == 1:
                inner(managed)

        self._release = release
        self.managed.deleter = release

    def give(self) -> Any:
        """Returns the capsule, and drops this object's reference to it."""
        capsule, self.capsule = self.capsule, None
        return capsule


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def teller(
    request: Any, library: Library, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Client, tuple[int, int]]:
    """A client whose library reports refused views as ended, and its memory's DLPack device."""
    folder = tmp_path_factory.mktemp("teller")
    made = GpuLibrary(folder, Path(library.path), request.param, tells_refused=True)
    client = create_client(made.path, {"cpu_device_count": 2}, name="made up")
    return client, (1, 0) if request.param == "cpu" else (2, FIRST_ID)


@needs_cc
def test_a_refused_view_that_is_told_to_have_ended(teller: tuple[Client, tuple[int, int]]) -> None:
    client, place = teller
    device = client.devices()[0]
    on_host = place == (1, 0)
    lent = Lent(4 if on_host else 16, place)
    if on_host:
        buffer = client.buffer_from_dlpack(lent.give(), device)
        np.testing.assert_array_equal(buffer.to_host(), ONE)
        assert buffer.unsafe_pointer() != lent.array.ctypes.data
        del buffer
    else:
        with pytest.raises(PjrtError, match="align"):
            client.buffer_from_dlpack(lent.give(), device)
    gc.collect()
    assert lent.releases == 1


@needs_cc
def test_a_view_that_is_made(teller: tuple[Client, tuple[int, int]]) -> None:
    client, place = teller
    lent = Lent(0, place)
    buffer = client.buffer_from_dlpack(lent.give(), client.devices()[0])
    np.testing.assert_array_equal(buffer.to_host(), ONE)
    gc.collect()
    assert lent.releases == 0
    del buffer
    gc.collect()
    assert lent.releases == 1


@pytest.mark.parametrize("where", ["_share", "host_array", "Buffer", "view"])
def test_an_interrupt_on_the_way(client: Client, device: Device, where: str) -> None:
    lent, called = Lent(4 if where == "host_array" else 0), getattr(dlpack_import, where)
    called = called.__init__ if where == "Buffer" else called
    with pytest.raises(KeyboardInterrupt) as caught, at_calls([called], interrupt):
        client.buffer_from_dlpack(lent.give(), device)
    assert lent.releases == 1, "while the exception lives"
    del caught
    gc.collect()
    assert lent.releases == 1


def test_an_interrupt_while_a_capsule_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    lent, rename, left = Lent(), dlpack._rename, [KeyboardInterrupt]

    def rename_and_raise(*args: Any) -> None:
        rename(*args)
        if left:
            raise left.pop()

    monkeypatch.setattr(dlpack, "_rename", rename_and_raise)
    with pytest.raises(KeyboardInterrupt):
        dlpack.take(lent.capsule)
    assert lent.releases == 0
    assert dlpack.read(lent.capsule).address == lent.array.ctypes.data
    lent.give()
    assert lent.releases == 1


def test_an_error_keeps_no_memory(client: Client, device: Device) -> None:
    errors: list[PlugrtError] = []
    for place, bits, kind in (((2, 0), 32, InvalidArgument), ((1, 0), 24, UnsupportedDtype)):
        lent = Lent(0, place)
        lent.managed.dl_tensor.bits = bits
        with pytest.raises(kind) as caught:
            client.buffer_from_dlpack(lent.give(), device)
        errors.append(caught.value)
        assert lent.releases == 1
    errors.clear()
    gc.collect()
    assert lent.releases == 1


def test_a_producer_without_a_deleter(client: Client, device: Device) -> None:
    for offset in (0, 4):
        lent = Lent(offset)
        lent.managed.deleter = dlpack.ffi.NULL
        buffer = client.buffer_from_dlpack(lent.give(), device)
        np.testing.assert_array_equal(buffer.to_host(), ONE)
        del buffer
        gc.collect()
        assert lent.releases == 0


_LATE = r"""
#include <stdlib.h>
typedef struct Managed Managed;
struct Managed { char tensor[48]; void* context; void (*deleter)(Managed*); };
static Managed* held;
static void late(void) { held->deleter(held); }
void hold(void* managed) { held = managed; atexit(late); }
"""


@needs_cc
@pytest.mark.parametrize("core", ["", "python"])
def test_a_tensor_is_released_after_the_interpreter(tmp_path: Path, core: str) -> None:
    """A consumer in C++ with static variables releases its tensors that late."""
    library = compile_c(tmp_path, _LATE)
    ran = run_python(
        """
        import ctypes, sys
        import numpy as np
        from plugrt.capi.buffers import dlpack
        a = np.arange(4.0)
        capsule = dlpack.export(a.ctypes.data, a.shape, a.dtype, (1, 0), a)
        hold = ctypes.CDLL(sys.argv[1]).hold
        hold.argtypes = [ctypes.c_void_p]
        hold(dlpack._get(capsule, b"dltensor"))
        dlpack._rename(capsule, b"used_dltensor")
        print(len(dlpack._exported))
        """,
        arguments=(str(library),),
        **({"PLUGRT_CORE": core} if core else {}),
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1\n", "")
