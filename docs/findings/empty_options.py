"""Compiles with empty compile options; takes the path of a PJRT library."""

import sys

from plugrt.capi.abi._abi import ffi
from plugrt.plugins import LibraryPlugin
from plugrt_sdk.conformance.function_table import call_well, new_args, open_table

TEXT = b"func.func public @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"

table = open_table(LibraryPlugin("library", sys.argv[1]))
initialize, _ = new_args("Plugin_Initialize")
call_well(table, "Plugin_Initialize", initialize)
create, _ = new_args("Client_Create")
call_well(table, "Client_Create", create)

program = ffi.new("PJRT_Program*")
program.struct_size = ffi.sizeof("PJRT_Program")
code, form = ffi.from_buffer(TEXT), ffi.from_buffer(b"mlir")
program.code, program.code_size = ffi.cast("char*", code), len(TEXT)
program.format, program.format_size = form, len(form)
args, _kept = new_args("Client_Compile")
args.client, args.program = create.client, program
args.compile_options, args.compile_options_size = ffi.new("char[1]"), 0
call_well(table, "Client_Compile", args)
print("it is compiled")
