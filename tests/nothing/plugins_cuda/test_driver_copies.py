"""The CUDA driver's copies, with a small library in place of ``libcuda``."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.errors import Internal
from plugrt_cuda import driver_copies
from plugrt_cuda.driver_copies import DriverCopies, find_copies
from plugrt_cuda.plugin import CudaPlugin
from support.clib import compile_c, needs_cc
from support.watched_calls import at_calls

pytestmark = needs_cc

# Records each call in `seen`, and fails in the function that `failing` names. Its memory is the
# host's; a stream's context is the stream's address plus one.
SOURCE = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
char seen[4096];
char failing[64];
int status = 700;
static _Thread_local void *stack[8];
static _Thread_local int depth;
static int note(const char *name, unsigned long long a, unsigned long long b) {
  size_t used = strlen(seen);
  snprintf(seen + used, sizeof seen - used, "%s %llx %llx\n", name, a, b);
  return strcmp(name, failing) ? 0 : status;
}
void *current(void) { return depth ? stack[depth - 1] : 0; }
int cuStreamGetCtx(void *stream, void **context) {
  *context = (char *)stream + 1;
  return note("cuStreamGetCtx", (uintptr_t)stream, 0);
}
int cuCtxPushCurrent_v2(void *context) {
  int failed = note("cuCtxPushCurrent", (uintptr_t)context, 0);
  if (!failed) stack[depth++] = context;
  return failed;
}
int cuCtxPopCurrent_v2(void **context) {
  *context = stack[--depth];
  return note("cuCtxPopCurrent", (uintptr_t)*context, 0);
}
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t size, void *stream) {
  int failed = note("cuMemcpyDtoHAsync", (uintptr_t)stream, size);
  if (!failed) memcpy(to, (void *)from, size);
  return current() == (char *)stream + 1 ? failed : 201;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t size, void *stream) {
  int failed = note("cuMemcpyHtoDAsync", (uintptr_t)stream, size);
  if (!failed) memcpy((void *)to, from, size);
  return current() == (char *)stream + 1 ? failed : 201;
}
int cuStreamSynchronize(void *stream) { return note("cuStreamSynchronize", (uintptr_t)stream, 0); }
int cuGetErrorName(int error, const char **name) {
  *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
  return error == 700 ? 0 : 1;
}
int cuGetErrorString(int error, const char **text) {
  *text = "an illegal memory access was encountered";
  return error == 700 ? 0 : 1;
}
"""
STREAM = 0x7F00_1234_5000  # an address of more than 32 bits


class Driver:
    """The library, and the calls that it recorded."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._library = ctypes.CDLL(self.path)
        self._library.current.restype = ctypes.c_void_p
        self._seen = (ctypes.c_char * 4096).in_dll(self._library, "seen")
        self._seen.value = b""
        self.fail("")

    def fail(self, function: str, status: int = 700) -> None:
        (ctypes.c_char * 64).in_dll(self._library, "failing").value = function.encode()
        ctypes.c_int.in_dll(self._library, "status").value = status

    @property
    def current(self) -> int | None:
        """This thread's context."""
        found: int | None = self._library.current()
        return found

    @property
    def seen(self) -> list[str]:
        return self._seen.value.decode().splitlines()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("libcuda"), SOURCE)


@pytest.fixture
def driver(path: Path) -> Driver:
    return Driver(path)


def around(*calls: str) -> list[str]:
    """Returns the record of calls made in the stream's context."""
    context = f"{STREAM + 1:x} 0"
    before = [f"cuStreamGetCtx {STREAM:x} 0", f"cuCtxPushCurrent {context}"]
    return [*before, *calls, f"cuCtxPopCurrent {context}"]


def test_copies_are_made_in_the_context_of_the_stream(driver: Driver) -> None:
    copies = DriverCopies(driver.path)
    device, host = np.arange(5, dtype=np.float32), np.zeros(20, np.uint8)
    copies.copy_to_host(host, device.ctypes.data, STREAM)
    copies.wait(STREAM)
    assert host.view(np.float32).tolist() == [0, 1, 2, 3, 4]
    copies.copy_to_device(device.ctypes.data, np.full(5, 7, np.float32), STREAM)
    assert device.tolist() == [7] * 5
    assert driver.seen == [
        *around(f"cuMemcpyDtoHAsync {STREAM:x} 14"),
        *around(f"cuStreamSynchronize {STREAM:x} 0"),
        *around(f"cuMemcpyHtoDAsync {STREAM:x} 14"),
    ]
    assert driver.current is None


COPY_TO_HOST = r"copying 4 bytes from 0x7000 on a GPU to the host"


@pytest.mark.parametrize(
    ("function", "called", "said"),
    [
        ("cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2", COPY_TO_HOST),
        ("cuStreamGetCtx", "cuStreamGetCtx", COPY_TO_HOST),
        ("cuCtxPushCurrent", "cuCtxPushCurrent_v2", COPY_TO_HOST),
        ("cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2", "copying 4 bytes from the host to 0x7000 on"),
        ("cuStreamSynchronize", "cuStreamSynchronize", "waiting for the program"),
    ],
)
def test_a_status_is_told(driver: Driver, function: str, called: str, said: str) -> None:
    copies, memory = DriverCopies(driver.path), np.zeros(4, np.uint8)
    driver.fail(function)
    says = (
        rf"driver failed at {said}.*: {called} returned 700, CUDA_ERROR_ILLEGAL_ADDRESS, an illegal"
    )
    steps = {
        "cuMemcpyHtoDAsync": lambda: copies.copy_to_device(0x7000, memory, STREAM),
        "cuStreamSynchronize": lambda: copies.wait(STREAM),
    }
    step = steps.get(function, lambda: copies.copy_to_host(memory, 0x7000, STREAM))
    with pytest.raises(Internal, match=says):
        step()
    assert driver.current is None  # the thread's previous context is restored


def test_a_status_without_a_name(driver: Driver) -> None:
    copies = DriverCopies(driver.path)
    driver.fail("cuStreamSynchronize", 4321)
    with pytest.raises(Internal, match=r"cuStreamSynchronize returned 4321$"):
        copies.wait(STREAM)


def test_threads_copy_at_once(driver: Driver) -> None:
    copies = DriverCopies(driver.path)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        device, host = np.full(1000, number, np.uint8), np.zeros(1000, np.uint8)
        try:
            for _ in range(5):
                copies.copy_to_host(host, device.ctypes.data, STREAM)
            assert (host == number).all()
        except BaseException as error:  # noqa: BLE001  # told by the test's thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_without_a_driver_there_are_none(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_copies(str(tmp_path / "libcuda.so.1")) is None
    old = compile_c(tmp_path, "int cuStreamSynchronize(void *stream) { return 0; }")
    assert find_copies(str(old)) is None
    found: Any = find_copies
    monkeypatch.setattr(driver_copies, "find_copies", lambda: found(driver.path))
    assert isinstance(CudaPlugin().stream_copies(), DriverCopies)


def test_an_interrupt_leaves_the_context_that_was(driver: Driver) -> None:
    copies = DriverCopies(driver.path)

    def interrupt(inputs: Mapping[str, Any], _: object) -> None:
        if inputs["name"] == "cuStreamSynchronize":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), at_calls([DriverCopies._call], interrupt):
        copies.wait(STREAM)
    assert driver.seen == around()
    assert driver.current is None
