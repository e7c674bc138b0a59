"""Starts a client with an option of the wrong type; takes the path of a PJRT library and a name."""

import sys

from plugrt.capi.abi._abi import ffi
from plugrt.plugins import LibraryPlugin
from plugrt_sdk.conformance.function_table import call_well, new_args, open_table

table = open_table(LibraryPlugin("library", sys.argv[1]))
initialize, _ = new_args("Plugin_Initialize")
call_well(table, "Plugin_Initialize", initialize)

name, text = (ffi.from_buffer(t.encode()) for t in (sys.argv[2], "two"))
option = ffi.new("PJRT_NamedValue*")
option.struct_size = ffi.sizeof("PJRT_NamedValue")
option.name, option.name_size = name, len(name)
option.type, option.string_value, option.value_size = 0, text, len(text)  # 0: a text
args, _kept = new_args("Client_Create")
args.create_options, args.num_options = option, 1
call_well(table, "Client_Create", args)
print("a client is created")
