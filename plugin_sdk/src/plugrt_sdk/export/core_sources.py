"""Which sources the compiled core is built from, for `native`.

Made by ``plugin_sdk/core/generate.py`` from the files there; do not edit.
"""

SOURCES = """\
abi_versions.c 9226558e7032
analyses.c 61f9d5319b7e
buffer_copies.c b08f4bebedc8
buffer_facts.c 3eb8cce23a0b
buffer_reads.c 215e5317b4e4
buffers.c 99fae0c9183a
client.c 2a9a8a3ee339
compiling.c 4d3c3e6a1154
contexts.c 180343d14bfb
core.h 0d6acdfafbe9
describing.c fa66a8320416
devices.c 36731b137ece
errors.c de286a850a9e
events.c 1106eef5cafa
executables.c 757c03739359
execution.c b4168536ea42
ffi.c 1ca6a04bbd32
futures.c 00cb83e90476
futures.h cc4bd79ca75e
key_values.c 727c2f08b2d4
layouts.c 0f316f4b3545
library/library.c 971e91b88484
memory.c fc452c9b9343
memory_descriptions.c c44928d3d60c
module.c 7c7d03377666
objects.c 43a3a5dc36de
old_glibc.h d7eabf2f8197
pjrt.h 03d1cc12e76e
programs.c 664fc2397e60
promises.c a3a88c527fba
puts.c f1c1c57ff5cb
python.c cd0c4b01ab29
python.h 25cf5321914d
shardings.c 20a8977070a5
slot_functions.h c87a08279347
slots.h 217132466e21
table.c d1d28a4c2450
topology.c 4c182745dcb3
trace/call.c 5a2ca96f2382
trace/checks.c dc5425655351
trace/clock.c 3d478c46d5cd
trace/descriptors.c 695633160be4
trace/descriptors.h d260a2bb2df5
trace/errors.c 8e59afa729c7
trace/events.c beda9bd6d3f6
trace/fields.c d5ba723400d7
trace/handles.c 9930befdfc6d
trace/journal.c f371870217bb
trace/process.c 7865daf79404
trace/record.c 0642425e89fc
trace/reports.c 97b0cbac1557
trace/settings.c 765ca7e73087
trace/table.c ce42df9a4ec9
trace/thunks.c e09c58d3dfb3
trace/trace.h babdc2ee7899
transfers.c 3afafa10d460
"""
