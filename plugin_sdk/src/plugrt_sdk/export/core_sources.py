"""Which sources the compiled core is built from, for `native`.

Made by ``plugin_sdk/core/generate.py`` from the files there; do not edit.
"""

SOURCES = """\
abi_versions.c b767eaf84d2d
analyses.c f7087943e012
buffer_copies.c 713124d61a98
buffer_facts.c 3eb8cce23a0b
buffer_reads.c 86f8fb7db3a1
buffers.c 0c9ddde53e9b
client.c 68312e2b509b
compiling.c 4d3c3e6a1154
contexts.c 734f445634cc
core.h a6bca4c11c06
describing.c 7e080c24d619
devices.c 1d7f54a7bf26
errors.c de286a850a9e
events.c 1106eef5cafa
executables.c fb087b6adc3f
execution.c c74e75fabece
ffi.c 76f905375777
futures.c 3f7b14e01fa3
futures.h 2198410421e0
key_values.c a94ea3b6ebe5
layouts.c 571f79d97741
library/library.c 11eddb69ba1c
memory.c fc452c9b9343
memory_descriptions.c b4db51d5983e
module.c 7c7d03377666
objects.c f3d811a63a26
old_glibc.h d7eabf2f8197
pjrt.h 03d1cc12e76e
programs.c e682e4099c05
promises.c a3a88c527fba
puts.c dff9bd904984
python.c cfb42fd680cb
python.h 75005413b587
shardings.c 6de55e7ea7c1
slot_functions.h 82c0d6395a3a
slots.h 217132466e21
table.c 5f6e72f5f0d4
topology.c 52f985ae8bbe
trace/call.c 5a2ca96f2382
trace/checks.c b971182f8824
trace/clock.c 3d478c46d5cd
trace/descriptors.c 695633160be4
trace/descriptors.h d260a2bb2df5
trace/errors.c 1abd65dfdbd0
trace/events.c 08514b33d817
trace/fields.c d5ba723400d7
trace/handles.c 36a425015583
trace/journal.c 8d7321e42bc8
trace/process.c 499a4cad30ac
trace/record.c 22cf972d2ba3
trace/reports.c 97b0cbac1557
trace/settings.c 56b2732fd800
trace/table.c 3ec4adede5ed
trace/thunks.c e09c58d3dfb3
trace/trace.h fcdb34bb5b75
transfers.c d9c56acacef8
"""
