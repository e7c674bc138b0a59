"""Joins two arrays of 2-bit integers, which ends the process: give the path of a PJRT library."""

import sys

import ml_dtypes
import numpy as np

from plugrt.interface import CompileOptions, Program
from plugrt.plugins import LibraryPlugin

TEXT = b"""func.func public @main(%x: tensor<3xi2>) -> tensor<6xi2> {
  %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<3xi2>, tensor<3xi2>) -> tensor<6xi2>
  return %0 : tensor<6xi2>
}"""
client = LibraryPlugin("library", sys.argv[1]).create_client({})
join = client.compile(Program(TEXT, "mlir", "join"), CompileOptions())
x = client.buffer_from_host(np.array([0, 1, 1], ml_dtypes.int2), client.devices()[0])
print("the joined values are", join.execute([client.shards([x])])[0][0].to_host().tolist())
