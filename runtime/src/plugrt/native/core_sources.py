"""Which sources the compiled core is built from, for `native_core`.

Made by ``runtime/core/generate.py`` from the files there; do not edit.
"""

SOURCES = """\
arrays/array.c 79d4fde6c7dd
arrays/array_buffer.c 97625e8d6ca0
arrays/array_host.c f4f66216a406
arrays/array_wait.c ce2d39d414b6
arrays/arrays.h 854633af2140
arrays/collect_held.c 16509d904cac
arrays/copy.c 5b55f5fe3a8a
arrays/deletion.c b664b6214772
arrays/function_reader.c ac9b2b5006bc
arrays/quick_put.c 671dfd181510
arrays/shards_wait.c cf2a0107428f
arrays/signature.c 7095166a136e
base/exceptions.c aaf67812d94a
base/lock.c b299538faa34
base/objects.c a2e401682292
base/python_method.c 87e2ac906a75
base/spares.c ae3d191acf16
base/thread_state.c 514f17b45c1b
calls/call_key.c 91bc1ead375b
calls/call_parts.c 2baea5b30e58
calls/calls.c 52c0746e057b
calls/calls.h b73d05c92058
calls/dict_keys.c ac2aa4ea3ba2
calls/flatten.c eef4d353bc49
calls/last_call.c f44ec7cbf6e1
calls/nodes.c 1cf2f3a8329f
calls/static_arguments.c 02c2b2e7b0e8
core.h 8bdcd23e41a1
launches/bounded_launcher.c 547df9e948ff
launches/device_put.c f3bdad8089fd
launches/donated.c 2a4f11340613
launches/donation.c 788cabca8a3e
launches/function_launcher.c 8585bfe5c509
launches/launch_errors.c 6b93c3a437dd
launches/launch_results.c ce9ecc29f89e
launches/launcher.c 2349c5247e27
launches/launches.h 196df7c44bf4
launches/outputs.c 277a93c327aa
launches/reordered.c afd5ddd5a208
launches/runner.c 1f72188dc572
launches/scratch_pool.c a21e241bfefe
launches/scratch_put.c 59f435963d48
launches/shards_launch.c 9260bc8016a2
launches/shards_launcher.c 2e0b951af84a
launches/tree.c ff14868e1b4c
library/buffer.c 39e133c3b2fc
library/capsule.c ad3385965e86
library/client.c 17a86d597200
library/events.c 030b2b5a0ae9
library/executable.c 9e6a27919476
library/guard.c fb08a98c8e83
library/guard.h c9dcab1e4e6d
library/hold.c 26ad1619d18a
library/library.h db404d270c4f
library/memory.c c16c4f364c02
library/pjrt.h 03d1cc12e76e
library/put.c 33ca722fbc94
library/read.c e2df58c601ad
library/references.c e7a2c7a96327
library/sizes.h 0b9bf7aeb785
library/trampolines.cc b14b89546bf4
library/view.c 18773982743c
library/wait.c 195f220e1591
module.c 64900617ee14
values/dtypes.c 9a678375b11f
values/host_avals.c d8f2ca82d9ca
values/host_buffer.c 8e15a52974c8
values/host_form.c 03849a88557b
values/numbers.c cf669c22cb5a
"""
