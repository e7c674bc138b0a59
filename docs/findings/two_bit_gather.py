"""Gathers 2-bit integers from four devices, again and again; takes the path of a PJRT library."""

import sys

import ml_dtypes
import numpy as np

from plugrt.interface import CompileOptions, Program
from plugrt.plugins import LibraryPlugin

TEXT = b"""func.func public @main(%x: tensor<2x4xi2>) -> tensor<8x4xi2> {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64,
    replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<2x4xi2>) -> tensor<8x4xi2>
  return %0 : tensor<8x4xi2>
}"""
client = LibraryPlugin("library", sys.argv[1]).create_client({"cpu_device_count": 4})
gather = client.compile(Program(TEXT, "mlir", "gather"), CompileOptions(num_replicas=4))
whole = (np.arange(32).reshape(8, 4) % 4 - 2).astype(ml_dtypes.int2)
parts = [client.buffer_from_host(whole[2 * d.id : 2 * d.id + 2], d) for d in client.devices()]
for _ in range(20):
    [found] = gather.execute([client.shards(parts)])
    if not np.array_equal(found[0].to_host().astype(np.int8), whole.astype(np.int8)):
        print("the gathered values are others:", found[0].to_host().tolist())
        break
else:
    print("the gathered values are right")
