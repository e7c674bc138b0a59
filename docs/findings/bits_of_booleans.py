"""Makes eight booleans of a byte, which ends the process: give the path of a PJRT library."""

import sys

import numpy as np

from plugrt.interface import CompileOptions, Program
from plugrt.plugins import LibraryPlugin

TEXT = b"""func.func public @main(%x: tensor<i8>) -> tensor<8xi1> {
  %0 = stablehlo.bitcast_convert %x : (tensor<i8>) -> tensor<8xi1>
  return %0 : tensor<8xi1>
}"""
client = LibraryPlugin("library", sys.argv[1]).create_client({})
bits = client.compile(Program(TEXT, "mlir", "bits"), CompileOptions())
x = client.buffer_from_host(np.int8(5), client.devices()[0])
print("the bits are", bits.execute([client.shards([x])])[0][0].to_host().tolist())
