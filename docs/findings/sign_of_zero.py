"""Takes the larger of -0 and 0, as constants and as arguments: give the path of a PJRT library."""

import sys

import numpy as np

from plugrt.interface import CompileOptions, Program
from plugrt.plugins import LibraryPlugin

CONSTANTS = b"""func.func public @main() -> tensor<f32> {
  %x = stablehlo.constant dense<-0.0> : tensor<f32>
  %y = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.maximum %x, %y : tensor<f32>
  return %0 : tensor<f32>
}"""
ARGUMENTS = b"""func.func public @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.maximum %x, %y : tensor<f32>
  return %0 : tensor<f32>
}"""
client = LibraryPlugin("library", sys.argv[1]).create_client({})
device = client.devices()[0]
zeros = [client.shards([client.buffer_from_host(np.float32(x), device)]) for x in (-0.0, 0.0)]
for name, text, given in (("constants", CONSTANTS, []), ("arguments", ARGUMENTS, zeros)):
    loaded = client.compile(Program(text, "mlir", name), CompileOptions())
    print(f"the maximum of -0 and 0, as {name}, is", loaded.execute(given)[0][0].to_host())
