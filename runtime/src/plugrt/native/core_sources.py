"""Which sources the compiled core is built from, for `native_core`.

Made by ``runtime/core/generate.py`` from the files there; do not edit.
"""

SOURCES = """\
array.c 79d4fde6c7dd
array_buffer.c 97625e8d6ca0
array_host.c f4f66216a406
array_wait.c ce2d39d414b6
arrays.h 477b75dc57b8
bounded_launcher.c 547df9e948ff
buffer.c 39e133c3b2fc
call_key.c 91bc1ead375b
call_parts.c 2baea5b30e58
calls.c 52c0746e057b
calls.h b73d05c92058
capsule.c ad3385965e86
client.c 17a86d597200
collect_held.c 16509d904cac
copy.c 5b55f5fe3a8a
core.h 73156b8de02c
deletion.c 9b480a1f0e72
device_put.c f3bdad8089fd
dict_keys.c ac2aa4ea3ba2
donated.c 2a4f11340613
donation.c 788cabca8a3e
dtypes.c 9a678375b11f
events.c 030b2b5a0ae9
exceptions.c aaf67812d94a
executable.c 9e6a27919476
flatten.c eef4d353bc49
function_launcher.c 8585bfe5c509
function_reader.c ac9b2b5006bc
guard.c 2fcf78efa7f7
guard.h c9dcab1e4e6d
hold.c 26ad1619d18a
host_avals.c d8f2ca82d9ca
host_buffer.c 8e15a52974c8
host_form.c 03849a88557b
last_call.c f44ec7cbf6e1
launch_errors.c 6b93c3a437dd
launch_results.c ce9ecc29f89e
launcher.c 2349c5247e27
launches.h 196df7c44bf4
library.h db404d270c4f
lock.c b299538faa34
memory.c c16c4f364c02
module.c a18d9da5c20f
nodes.c b523396b58bd
numbers.c cf669c22cb5a
outputs.c 277a93c327aa
pjrt.h 03d1cc12e76e
put.c 33ca722fbc94
python_method.c 87e2ac906a75
quick_put.c 671dfd181510
read.c e2df58c601ad
references.c e7a2c7a96327
reordered.c afd5ddd5a208
runner.c 1f72188dc572
scratch_pool.c a21e241bfefe
scratch_put.c 59f435963d48
shards_launch.c 9260bc8016a2
shards_launcher.c 2e0b951af84a
shards_wait.c cf2a0107428f
signature.c 7095166a136e
sizes.h f0ce231aa8b3
spares.c ae3d191acf16
static_arguments.c 02c2b2e7b0e8
thread_state.c 514f17b45c1b
trampolines.cc 2def2bd38ef5
tree.c ff14868e1b4c
view.c 18773982743c
wait.c 195f220e1591
"""
