"""Which sources the compiled core is built from, for `native`.

Made by ``plugin_sdk/core/generate.py`` from the files there; do not edit.
"""

SOURCES = """\
abi_versions.c 2d8789808aab
analyses.c 13eecca37ade
buffer_copies.c 6f702de8674f
buffer_facts.c 16a576ae6898
buffer_reads.c c244a6e95ce2
buffers.c 8a4a36df926e
client.c 8eb2a2edfdad
compiling.c 35bbe17dfc88
contexts.c 34b5c90f6941
core.h dbe5dbf9459f
describing.c 6429859e9c9f
devices.c f1faaae60d57
errors.c 728ffe782ea6
events.c 39ab15f933a0
executables.c b740cbaa73f1
execution.c e1c6ffc48845
ffi.c 4c45dbf334a9
futures.c 55392288b545
futures.h a14e18a18118
key_values.c b9817f0335ed
layouts.c 262ed09a608a
library/library.c e8f2082f9154
memory.c 5d2f0bcbe52d
memory_descriptions.c 352098a9de71
module.c 7c7d03377666
objects.c eaa088451440
old_glibc.h c38ea06a6310
pjrt.h 99fe24f2b8cf
programs.c d2af87302977
promises.c be6db6c6aeae
puts.c 76d68f1298c2
python.c 25fa9d6c7c7f
python.h bac45dd97d5d
shardings.c 41d33e4326e7
slot_functions.h 2d639d263519
slots.h 217132466e21
table.c c1a41678f9db
topology.c 21259bb45acd
trace/call.c dee79b5ea090
trace/checks.c 5b8616454131
trace/clock.c 3d478c46d5cd
trace/descriptors.c 695633160be4
trace/descriptors.h d260a2bb2df5
trace/errors.c d973a7e5b52e
trace/events.c bf92415740b5
trace/fields.c 0dce08ebb85a
trace/handles.c bdd6bb064e2a
trace/journal.c 483ea2aceb10
trace/process.c 0dfd08808689
trace/record.c d3513f3e5faf
trace/reports.c 97b0cbac1557
trace/settings.c dfe9301b3525
trace/table.c 9ba451b5ca59
trace/thunks.c e09c58d3dfb3
trace/trace.h 9ce3a31c9625
transfers.c 1485c9d63bcb
"""
