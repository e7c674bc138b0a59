"""Which sources the compiled core is built from, for `compiled_core`.

Made by ``runtime/core/generate.py`` from the files there; do not edit.
"""

SOURCES = """\
array.c 1cc06d32925d
array_buffer.c 76443b3a8a06
array_host.c 919d19f9fe8b
array_wait.c ce2d39d414b6
arrays.h e60c8890d2bc
bounded_launcher.c 547df9e948ff
buffer.c cb0a1fc23463
call_form.c d16466009de6
call_key.c 7056ab12cacd
call_parts.c 711db7f52cdb
calls.c 7138627b6e75
calls.h f6813d39cedf
capsule.c ad3385965e86
client.c 17a86d597200
collect_held.c 16509d904cac
copy.c 5b8794f7f028
core.h 52a5b502cd51
deletion.c b664b6214772
dict_keys.c ac2aa4ea3ba2
donation.c c33bc4c86eef
dtypes.c 9a678375b11f
events.c 030b2b5a0ae9
exceptions.c aaf67812d94a
executable.c 9e6a27919476
function_launcher.c 899f3e21efb9
function_reader.c f09b868c0880
gifts.c 4b220da40c91
guard.c 2fcf78efa7f7
guard.h c9dcab1e4e6d
holds.c 2eb502708d92
host_avals.c d8f2ca82d9ca
host_form.c 03849a88557b
last_call.c 9f2d7119a93e
launch_errors.c 6b93c3a437dd
launch_results.c ce9ecc29f89e
launcher.c 2349c5247e27
launches.h a93c06efd1bc
lending.c f15ae5864ac9
lent.c b3f40f8299d1
library.h 5827f1077b0c
loan.c 057f7c25d332
lock.c b299538faa34
memory.c c16c4f364c02
module.c 7a0c78229b8a
nodes.c 1cf2f3a8329f
numbers.c cf669c22cb5a
outputs.c 277a93c327aa
pjrt.h 03d1cc12e76e
placing.c 1c4661834ff5
put.c 33ca722fbc94
python_method.c 87e2ac906a75
quick_put.c 3536d0e7b678
read.c e2df58c601ad
references.c e7a2c7a96327
reordered.c afd5ddd5a208
runner.c a25cc068e0d0
shards_launch.c 3e76c20b1151
shards_launcher.c 1604c5b520fa
shards_wait.c cf2a0107428f
signature.c 7095166a136e
sizes.h f0ce231aa8b3
spares.c ae3d191acf16
static_arguments.c 02c2b2e7b0e8
thread_state.c 514f17b45c1b
trampolines.cc 2def2bd38ef5
tree.c ff14868e1b4c
view.c ce8662fca2c1
wait.c 195f220e1591
"""
