"""Shows faults of XLA in a PJRT library: ``python docs/findings/library_faults.py LIB [NAME ...]``.

Each function calls the library without the workaround that `docs/data/upstream_faults.toml` states.
Each runs in a child process; after its output there is a line with its name and exit status.
"""

import os
import subprocess
import sys
import threading
import time

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.extensions import ffi_registration
from plugrt.interface import CompileOptions, Program
from plugrt.plugins import LibraryPlugin
from plugrt_sdk.conformance.function_table import new_args

LOOP = """func.func public @main(%a: tensor<f32>) -> tensor<f32> {
  %n = stablehlo.constant dense<100000000> : tensor<i32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%k = %i, %v = %a) : tensor<i32>, tensor<f32>
    cond {
      %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %m = stablehlo.add %k, %one : tensor<i32>
      %w = stablehlo.cosine %v : tensor<f32>
      stablehlo.return %m, %w : tensor<i32>, tensor<f32>
    }
  return %0#1 : tensor<f32>
}"""
TILED = """func.func public @main(%a: tensor<4x4xf32>)
    -> (tensor<4x4xf32> {mhlo.layout_mode = "LAYOUT"}) {
  return %a : tensor<4x4xf32>
}"""


def call(source, name, **values):
    """Calls a function of the library's table; the client neither locks nor counts it."""
    args, _kept = new_args(name)
    for field, value in values.items():
        setattr(args, field, value)
    source.library.slots[name](args)


def put(client, array):
    return client.buffer_from_host(array, client.devices()[0])


def compiled(client, text):
    return client.compile(Program(text.encode(), "mlir", "main"), CompileOptions())


def at_once(function):
    threads = [threading.Thread(target=function, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    return threads


def xla_ffi_type_info(client):
    args = ffi.new("XLA_FFI_Type_Register_Args*")  # its type_info is NULL
    args.struct_size = ffi.sizeof("XLA_FFI_Type_Register_Args")
    name = ffi.from_buffer(b"type")
    args.name.ptr, args.name.len = name, len(name)
    args.type_id = number = ffi.new("int64_t*")
    ffi_registration._call(client.library, "type_register", "a type", args, "Host")
    print("registered:", number[0])


def xla_destroyed_in_call(client):
    loop, x = compiled(client, LOOP), put(client, np.float32(1))
    threads = at_once(lambda: loop.execute([(x,)])[0][0].to_host())
    time.sleep(0.5)  # until all are within the loop
    call(client, "Client_Destroy", client=client.handle().pointer)
    for thread in threads:
        thread.join()
    print("the launches have ended")


def xla_references_race(client, rounds=10):
    names = ("Buffer_IncreaseExternalReferenceCount", "Buffer_DecreaseExternalReferenceCount")
    functions = [client.library.slots[name] for name in names]
    for _ in range(rounds):
        x = put(client, np.ones(8, np.float32))

        def refer(x=x):
            calls = [new_args(name) for name in names]
            for args, _kept in calls:
                args.buffer = x._live()
            for _ in range(100_000):
                for function, (args, _kept) in zip(functions, calls, strict=True):
                    function(args)

        for thread in at_once(refer):
            thread.join()
        del x, refer  # aborts where a reference was lost: "Non-zero type 1 hold on destruction"
    print("as many references were released as acquired")


def xla_cpu_tiles(client):
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    for layout in ("{0,1}", "{0,1:T(2,2)}"):
        loaded = compiled(client, TILED.replace("LAYOUT", layout))
        ((y,),) = loaded.execute([(put(client, x),)])
        print(layout, np.array_equal(y.to_host(), x))


FAULTS = {f.__name__: f for f in (
    xla_ffi_type_info, xla_destroyed_in_call, xla_references_race, xla_cpu_tiles
)}  # fmt: skip


def main(library, names, child="--child"):
    if names[:1] == [child]:
        FAULTS[names[1]](LibraryPlugin("library", library).create_client({}))
        sys.stdout.flush()
        os._exit(0)  # without plugrt's own work at exit
    for name in names or FAULTS:
        done = subprocess.run([sys.executable, __file__, library, child, name], timeout=120)
        print(f"--- {name}: {done.returncode}", flush=True)


main(sys.argv[1], sys.argv[2:])
