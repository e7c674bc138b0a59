"""Exported plugins used from many threads, at the interpreter's end, across forks, and twice."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugrt.capi.abi._abi import ffi
from plugrt.capi.client.async_transfers import AsyncTransfer
from plugrt.errors import DeletedBuffer, InvalidArgument, PjrtError
from plugrt.interface import TensorType
from plugrt_sdk import BackendClient
from plugrt_sdk.export import _core
from support import children
from support.clib import compile_c, needs_cc
from support.effort import EFFORT
from support.exported import ONE, Exported, compile_add, find_handles_left, put
from support.late_client import Adder, LateAdder

TESTS = Path(__file__).parents[3]
CORE = TESTS.parent / "plugin_sdk/core"
ROUNDS = 100 * EFFORT


def _run(script: str, *arguments: str) -> str:
    """Runs Python text in a child that must end with exit code 0; returns its output."""
    environment = {**os.environ, "PYTHONPATH": children.path_with(TESTS)}
    command = [sys.executable, "-X", "faulthandler", "-c", script, *arguments]
    done = children.run(command, timeout=250, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_clients_of_two_plugins() -> None:
    """Each has its own devices, and refuses the other's buffers."""
    one = Exported(lambda: BackendClient(Adder(2)))
    other = Exported(lambda: BackendClient(Adder(2)), platform="other")
    clients = [one.client(), one.client(), other.client()]
    assert [c.platform for c in clients] == ["adder", "adder", "other"]
    buffers, programs = [put(c, ONE * i) for i, c in enumerate(clients)], []
    for i, client in enumerate(clients):
        programs.append(compile_add(client))
        [[double]] = programs[i].execute([(buffers[i],), (buffers[i],)])
        assert double.to_host().tolist() == (2 * i * ONE).tolist()
        with pytest.raises(PjrtError):
            programs[i].execute([(buffers[i - 1],), (buffers[i],)])
        with pytest.raises(InvalidArgument, match="another client"):
            client.library.call(
                "Buffer_CopyToDevice", buffer=buffers[i - 1]._live(),
                dst_device=client.devices()[1].pointer,
            )  # fmt: skip
    clients[0].close()
    assert buffers[1].to_host().tolist() == ONE.tolist()


def _use_shared(client: Any, shared: list[Any], seed: int) -> None:
    """Does random things with buffers that other threads use, delete and replace meanwhile."""
    chance = random.Random(seed)
    memory = client.devices()[0].default_memory()
    program = compile_add(client)
    acts: list[Callable[[Any], Any]] = [
        lambda b: b.to_host(),
        lambda b: b.copy_raw_to_host(4, 4),
        lambda b: b.block_until_ready(),
        lambda b: b.ready_event().is_ready(),
        lambda b: b.delete(),
        lambda b: b.copy_to_device(client.devices()[1]).to_host(),
        lambda b: program.execute([(b,), (b,)])[0][0].to_host(),
    ]

    def replace(place: int) -> None:
        if chance.random() < 0.5:
            shared[place] = put(client)
            return
        transfer = AsyncTransfer(client, [TensorType((3,), ONE.dtype)], memory)
        shared[place] = transfer.retrieve(0)
        if chance.random() < 0.8:
            transfer.send(0, ONE)

    for _ in range(ROUNDS):
        place = chance.randrange(len(shared))
        try:
            chance.choice(acts)(shared[place])
        except (PjrtError, DeletedBuffer):
            replace(place)


def _share_among_threads(backend: type[Adder]) -> None:
    client = Exported(lambda: BackendClient(backend(2))).client()
    shared = [put(client) for _ in range(4)]
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            _use_shared(client, shared, seed)
        except BaseException as error:  # noqa: BLE001  # shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for buffer in shared:
        buffer.delete()


class _DeletedWhenRead(tuple[Any, ...]):
    """An argument whose buffers another thread deletes as soon as the launch has checked them."""

    def __getitem__(self, key: Any) -> Any:
        buffer = super().__getitem__(key)
        buffer.delete()
        return buffer


@pytest.mark.parametrize("checked_before", [False, True])
def test_a_buffer_deleted_during_a_launch_raises_deleted_buffer(checked_before: bool) -> None:
    client = Exported(lambda: BackendClient(Adder(2))).client()
    program = compile_add(client)
    if checked_before:
        program.execute([(put(client),), (put(client),)])
    for place in range(2):
        arguments: list[Any] = [(put(client),), (put(client),)]
        arguments[place] = _DeletedWhenRead(arguments[place])
        with pytest.raises(DeletedBuffer, match="was deleted"):
            program.execute(arguments)


@pytest.mark.parametrize("backend", [Adder, LateAdder])
def test_nothing_is_left_of_what_threads_shared(backend: type[Adder]) -> None:
    gc.collect()
    before = _core.count_handles()
    _share_among_threads(backend)
    assert find_handles_left(before) == {}


CALLBACK = r"""
#include <dlfcn.h>
int held = -1;
void on_ready(void* error, void* argument) {
  int (*check)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Check");
  held = check();
}
"""


@needs_cc
def test_callbacks_of_the_host_are_made_without_the_gil(tmp_path: Path) -> None:
    """They may wait for a host's lock, and the thread that holds it may wait for the GIL."""
    library = ctypes.CDLL(str(compile_c(tmp_path, CALLBACK, "-ldl")))
    address = ctypes.cast(library.on_ready, ctypes.c_void_p).value
    exported = Exported(lambda: BackendClient(LateAdder()))
    client = exported.client()
    gate, told = threading.Event(), threading.Event()
    exported.backend._worker.later(gate.wait)
    buffer = put(client)
    event = client.library.call("Buffer_ReadyEvent", buffer=buffer._live()).event
    callback = ffi.cast("PJRT_Event_OnReadyCallback", address)
    client.library.call("Event_OnReady", event=event, callback=callback)
    buffer.ready_event().on_ready(lambda error: told.set())  # which is called second
    gate.set()
    assert told.wait(60)
    client.library.call("Event_Destroy", event=event)
    assert ctypes.c_int.in_dll(library, "held").value == 0


FORKING = """
import os, sys, threading
from plugrt.errors import FailedPrecondition
from plugrt_sdk import BackendClient
from support.exported import ONE, Exported, compile_add, put
from support.late_client import Adder

class Forking(Adder):
    def put(self, array, device):
        self.child = os.fork()
        return super().put(array, device)

exported = Exported(lambda: BackendClient(Forking()))
client = exported.client()
try:
    x = put(client)
    [[y]] = compile_add(client).execute([(x,), (x,)])
except FailedPrecondition:
    sys.exit(exported.backend.child != 0)
assert exported.backend.child
assert y.to_host().tolist() == [2, 4, 6]
done = []
thread = threading.Thread(target=lambda: done.append(y.to_host().tolist()))
thread.start()
thread.join()
assert done
status = os.waitpid(exported.backend.child, 0)[1]
print("child", os.waitstatus_to_exitcode(status))
"""


def test_a_method_that_forks() -> None:
    """The parent computes; the child gets an error, and exits normally."""
    assert _run(FORKING) == "child 0\n"


HOST = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "pjrt.h"

static const PJRT_Api* api;
static PJRT_Client* client;
static PJRT_Device* device;
static volatile int calls, refused;

static void die(void* unused) { fprintf(stderr, "a thread was ended in the table\n"); _exit(3); }

static void* run(void* unused) {
  const float data[3] = {1, 2, 3};
  const int64_t dims[1] = {3};
  pthread_cleanup_push(die, NULL);
  for (;;) {
    struct PJRT_Client_BufferFromHostBuffer_Args put = {sizeof put};
    put.client = client; put.device = device; put.data = data; put.dims = dims; put.num_dims = 1;
    put.type = PJRT_Buffer_Type_F32;
    PJRT_Error* error = api->Client_BufferFromHostBuffer(&put);
    if (error != NULL) {
      struct PJRT_Error_Destroy_Args destroy = {sizeof destroy, NULL, error};
      api->Error_Destroy(&destroy);
      refused++;
      break;
    }
    struct PJRT_Event_Destroy_Args event = {sizeof event, NULL, put.done_with_host_buffer};
    struct PJRT_Buffer_Destroy_Args buffer = {sizeof buffer, NULL, put.buffer};
    api->Event_Destroy(&event);
    api->Buffer_Destroy(&buffer);
    calls++;
  }
  pthread_cleanup_pop(0);
  return NULL;
}

/* What a host frees when Python is gone. */
static void __attribute__((destructor)) at_the_end(void) {
  struct PJRT_Client_Destroy_Args destroy = {sizeof destroy, NULL, client};
  if (api != NULL && api->Client_Destroy(&destroy) != NULL) _exit(4);
  if (api != NULL && refused == 0) _exit(5);
}

void start(const PJRT_Api* table, int threads) {
  api = table;
  struct PJRT_Client_Create_Args create = {sizeof create};
  if (api->Client_Create(&create) != NULL) _exit(6);
  client = create.client;
  struct PJRT_Client_Devices_Args devices = {sizeof devices, NULL, client};
  api->Client_Devices(&devices);
  device = devices.devices[0];
  for (int i = 0; i < threads; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    pthread_detach(thread);
  }
  while (calls < 100) usleep(100);
}
"""
ENDING = """
import ctypes, sys
from plugrt_sdk import BackendClient
from support.exported import Exported
from support.late_client import Adder
capsule = Exported(lambda: BackendClient(Adder())).capsule
get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
ctypes.CDLL(sys.argv[1]).start(ctypes.c_void_p(get(capsule, b"pjrt_c_api")), 4)
print("the end")
"""


@needs_cc
def test_python_ends_while_threads_of_the_host_are_at_work(tmp_path: Path) -> None:
    """No thread is ended within a call; later calls are refused, and the host can free all."""
    library = compile_c(tmp_path, HOST, f"-I{CORE}", "-pthread")
    for _ in range(EFFORT):
        assert _run(ENDING, str(library)) == "the end\n"
