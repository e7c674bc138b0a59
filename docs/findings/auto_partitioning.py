"""Compiles a program that is to divide itself; takes the path of a PJRT library and a topology.

Without a topology it is compiled by the library's client. With ``--gspmd`` not Shardy divides it.
"""

import sys
from dataclasses import replace

from plugrt.capi.abi import proto_wire
from plugrt.interface import CompileOptions, DeviceAssignment, Program
from plugrt.plugins import LibraryPlugin

TEXT = b"""func.func public @main(%a: tensor<60000x60000xf32>, %b: tensor<60000x60000xf32>)
    -> tensor<60000x60000xf32> {
  %0 = stablehlo.dot %a, %b
    : (tensor<60000x60000xf32>, tensor<60000x60000xf32>) -> tensor<60000x60000xf32>
  return %0 : tensor<60000x60000xf32>
}"""
vars(proto_wire)["require_auto_partitioning"] = lambda *_: None  # plugrt's own refusal
given = [argument for argument in sys.argv[1:] if argument != "--gspmd"]
plugin = LibraryPlugin("library", given[0])
options = CompileOptions(
    num_partitions=4,
    use_spmd_partitioning=True,
    use_shardy_partitioner="--gspmd" not in sys.argv,
    use_auto_spmd_partitioning=True,
    auto_spmd_partitioning_mesh_shape=(4,),
    auto_spmd_partitioning_mesh_ids=(0, 1, 2, 3),
)
program = Program(TEXT, "mlir", "dot")
if given[1:]:
    compiled = plugin.create_topology(given[1], {}).compile(program, options)
else:
    placed = replace(options, device_assignment=DeviceAssignment(((0, 1, 2, 3),)))
    client = plugin.create_client({"cpu_device_count": 4})
    compiled = client.compile(program, placed).executable
print("it is compiled:", compiled.parameter_shardings(), compiled.output_shardings())
