"""Wrong calls of the methods of a client and of all its objects; a program for a child process.

``python -m support.wrong_backend_calls KIND SEED`` prints as JSON the called methods and their
errors that are not plugrt's. KIND is one of `CLIENTS`.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from plugrt.errors import PlugrtError, Unimplemented
from plugrt.interface import (
    Client,
    CompileOptions,
    DeviceAssignment,
    ExecuteOptions,
    LoadedExecutable,
    Program,
    TensorType,
)
from support import children
from support.wrong_calls import WRONG, parameters_of

TEXT = b"""func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %b : tensor<4xf32> return %0 : tensor<4xf32> }"""
HOST = np.arange(4, dtype=np.float32)
LEFT_OUT = {
    # They close or delete objects that later calls need.
    "close", "delete",
    # Called by plugrt itself, with objects of its own or of its library; author's attributes.
    "handle", "device_at", "memory_at", "intern_signature", "place", "library", "backend", "raw",
    "require_open", "refuse", "held", "launcher", "parts", "from_parts", "from_buffers",
    "part_is_deleted", "give_away", "begin_profile", "register_handler",
    "copy_between_processes", "compile_put", "compile_copy", "compile_function_put",
    "compile_function_copy",
    "await_shards",
    "register_handler_type",
    # Errors of a sequence: IndexError ends a loop over one.
    "index", "count",
}  # fmt: skip


def start_cpu() -> Client:
    from plugrt_cpu import plugin as cpu_backend

    return cpu_backend.create_client({})


def start_library() -> Client:
    from plugrt.capi import create_client, load_library
    from support.xla_cpu import library_path

    path = library_path()
    assert path is not None
    return create_client(load_library(path), {"cpu_device_count": 2}, name="xla_cpu")


def start_backend() -> Client:
    from plugrt_reference.backend import Reference
    from plugrt_sdk import BackendClient

    return BackendClient(Reference())


CLIENTS: dict[str, Callable[[], Client]] = {
    "cpu": start_cpu,
    "library": start_library,
    "sdk": start_backend,
}


class Objects:
    """A client, and one of each kind of its objects."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.device, self.other = client.devices()[0], client.devices()[-1]
        self.buffer = client.buffer_from_host(HOST, self.device)
        self.deleted = client.buffer_from_host(HOST, self.device)
        self.deleted.delete()
        self.program = Program(TEXT)
        self.loaded = client.compile(self.program, CompileOptions())
        self.shards = client.shards((self.buffer,))
        self.several: LoadedExecutable | None = None
        if self.device is not self.other and client.capabilities.multiple_devices:
            self.several = client.compile(self.program, CompileOptions(num_replicas=2))

    def owners(self) -> Iterator[Any]:
        """Yields the objects whose methods are called."""
        yield from (self.client, self.device, self.device.default_memory(), self.buffer)
        yield from (self.loaded, self.loaded.executable, self.buffer.ready_event(), self.shards)
        if self.several is not None:
            yield self.several
        with contextlib.suppress(Unimplemented):
            yield self.client.topology()

    def good(self) -> dict[str, Any]:
        """Returns a valid value for each name of a parameter."""
        serialized = b""
        with contextlib.suppress(Unimplemented):
            serialized = self.loaded.executable.serialize()
        return {
            "array": HOST, "device": self.device, "memory": self.device.default_memory(),
            "semantics": 0, "program": self.program, "options": CompileOptions(),
            "serialized": serialized, "capsule": HOST.__dlpack__(), "buffers": (self.buffer,),
            "arguments": [self.shards, self.shards], "arrays": [HOST], "kind": "device",
            "device_id": 0, "num_replicas": 1, "num_partitions": 1, "lent": (0,), "stream": None,
            "type": TensorType((4,), np.dtype("float32")), "callback": lambda error: None,
            "local_hardware_id": 0, "executable": self.loaded.executable, "offset": 0, "size": 4,
            "devices": (self.device,), "memory_kind": None,
        }  # fmt: skip

    def wrong(self, stranger: Stranger) -> dict[str, Any]:
        """Returns values of all types, and ours in wrong places; some functions accept some."""
        return {
            **WRONG,
            "a device": self.device, "another device": self.other, "memory": self.device.memories(),
            "a buffer": self.buffer, "a deleted buffer": self.deleted, "shards": self.shards,
            "deleted shards": [(self.deleted,), (self.deleted,)], "one argument": [self.shards],
            "another type": [(stranger.int32,), (stranger.int32,)],
            "a foreign device": stranger.device, "a foreign buffer": stranger.buffer,
            "foreign buffers": [(stranger.buffer,), (stranger.buffer,)],
            "a foreign memory": stranger.device.default_memory(),
            "no program": Program(b"no program"), "format x": Program(TEXT, "x"),
            "no code": Program(b""), "an hlo": Program(TEXT, "hlo"), "a number": Program(b"3"),
            "bytes program": Program(b"\0\xff" * 20), "a lone surrogate": "\ud800",
            "options": CompileOptions(), "9 devices": CompileOptions(num_replicas=999),
            "unknown option": CompileOptions(env_overrides={"no_such": 1}),
            "devices 9": CompileOptions(device_assignment=DeviceAssignment(((9,),))),
            "bad proto": CompileOptions(encoded=b"\xff\xff"),
            "kept 99": ExecuteOptions(0, (99, -1)), "execute options": ExecuteOptions(),
            "structured": np.zeros(2, [("a", "i4")]), "masked": np.ma.masked_all(3),
            "0-d object": np.array(None), "matrix": np.asmatrix(np.eye(2)), "scalar": np.float32(1),
            "a dtype": np.dtype("float32"), "a used capsule": stranger.used, "2**40": 2**40,
            "-2**63": -(2**63), "nested": [[[HOST]]], "set": {1, 2}, "generator": (i for i in "ab"),
            "range": range(3), "class": Client, "nan text": "nan", "memoryview": memoryview(b"ab"),
        }  # fmt: skip


class Stranger:
    """An object of another client."""

    def __init__(self) -> None:
        from plugrt_reference.backend import Reference
        from plugrt_sdk import BackendClient

        client = BackendClient(Reference())
        self.device = client.devices()[0]
        self.buffer = client.buffer_from_host(HOST, self.device)
        self.int32 = client.buffer_from_host(HOST.astype(np.int32), self.device)
        self.used = HOST.__dlpack__()
        np.from_dlpack(Lent(self.used))


class Lent:
    """An object that lends NumPy a capsule."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def methods(owner: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yields the public methods with arguments."""
    for name in dir(type(owner)):
        member = inspect.getattr_static(type(owner), name)
        public = not name.startswith("_") and name not in LEFT_OUT
        if public and inspect.isfunction(member) and len(inspect.signature(member).parameters) > 1:
            yield name, getattr(owner, name)


def calls(
    good: dict[str, Any], wrong: dict[str, Any], function: Callable[..., Any], seed: int
) -> Iterator[tuple[str, list[Any]]]:
    """Yields calls with one argument wrong, and some with all of them wrong."""
    rng = random.Random(seed)
    names = [n for n, kind, _ in parameters_of(function) if kind in (0, 1)]
    right = [good.get(n) for n in names]
    for i, name in enumerate(names):
        # A class is a callback, and its errors are its own.
        rest = {t: v for t, v in wrong.items() if not (name == "callback" and callable(v))}
        for title, value in rest.items():
            yield f"{name}={title}", [*right[:i], value, *right[i + 1 :]]
    for _ in range(60 * (len(names) > 1)):
        titles = [rng.choice([*wrong]) for _ in names]
        yield ", ".join(titles), [wrong[t] for t in titles]


def judge(function: Callable[..., Any], arguments: list[Any]) -> str | None:
    """Returns the call's error if that is not plugrt's."""
    try:
        function(*arguments)
    except PlugrtError:
        return None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
        return f"{type(error).__name__}: {error}"
    return None


def find_strange(client: Client, seed: int) -> tuple[list[str], list[str]]:
    """Returns the methods that were called, and the calls with errors that are not plugrt's."""
    objects, called, found = Objects(client), [], []
    good, wrong = objects.good(), objects.wrong(Stranger())
    for owner in objects.owners():
        for name, function in methods(owner):
            called.append(f"{type(owner).__name__}.{name}")
            for title, arguments in calls(good, wrong, function, seed):
                # The last line identifies the call that ended the process, if one does.
                print(called[-1], title, file=sys.stderr, flush=True)
                raised = judge(function, arguments)
                if raised:
                    found.append(f"{called[-1]}({title}): {raised:.200}")
    return called, found


def run(kind: str, seed: int) -> tuple[list[str], list[str]]:
    """Returns the result of `find_strange` for a client in a child process."""
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join(map(str, (tests, tests.parent / "examples/plugin-reference/src")))
    env = {**os.environ, "PYTHONPATH": paths, "JAX_NUM_CPU_DEVICES": "2"}
    command = [sys.executable, "-m", "support.wrong_backend_calls", kind, seed]
    done = children.run(command, timeout=300, env=env)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    answer = json.loads(done.stdout)
    return answer["methods"], answer["strange"]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    methods_called, strange = find_strange(CLIENTS[sys.argv[1]](), int(sys.argv[2]))
    print(json.dumps({"methods": methods_called, "strange": strange}))
