"""Measures the time of a jitted call layer by layer.

cProfile costs more than most of these layers, so each is timed by itself: the library from C, its
functions through cffi, the C API host, and the call.
"""

from __future__ import annotations

from typing import Any

from floor import Floor

import plugrt
from harness import compare_sides, human, timed
from plugrt.interface import LoadedExecutable


def print_layers(floor: Floor, program: str, array: Any) -> None:
    """Prints the time that each layer adds to a jitted call on two arrays."""
    call = plugrt.jit(lambda a, b: a + b)
    x, y = plugrt.device_put(array), plugrt.device_put(array)
    executable = plugrt.compile(program).runtime_executable()
    # without the client's limit of launches in flight
    executable = getattr(executable, "_loaded", executable)
    shards = [x._live(), y._live()]
    for _ in range(2):  # the first launch differs from all later ones
        executable.execute(shards)
    call(x, y)
    launch = executable.launcher
    row = compare_sides(
        "layers",
        {
            "jit": timed(lambda: call(x, y)),
            "host": timed(lambda: launch(shards)),
            "cffi": timed(bare_launch(executable)),
            "C": floor.launch(program, array, 2, 1),
        },
    )
    whole = row.seconds["jit"]
    print("\nWhere a jitted call on 2 arrays spends its time")
    below = 0.0
    for layer, what in (
        ("C", "the library: Execute and Buffer_Destroy, called from C"),
        ("cffi", "the same two calls from Python, through cffi"),
        ("host", "plugrt.capi: arguments in, a Buffer out, its finaliser"),
        ("jit", "plugrt.jit: the look-up by signatures, an Array out"),
    ):
        added = row.seconds[layer] - below
        below = row.seconds[layer]
        print(f"  {human(added):>9} {added / whole:6.0%}  {what}")
    print(f"  {human(whole):>9}          the call; the library's share is the floor")


def bare_launch(executable: LoadedExecutable) -> Any:
    """Returns a function that makes only the two library calls of a launch."""
    handle: Any = executable._handle  # type: ignore[attr-defined]
    prepared = executable._launch_args[-1]  # type: ignore[attr-defined]
    execute, arguments = executable._launch, prepared.args  # type: ignore[attr-defined]
    results = prepared.outputs[0]
    destroy, place = handle.buffer_destroy, handle.new_destroy_args()
    keep = [prepared.arguments[0][i] for i in range(prepared.all.stop)]
    assert keep, "they must hold the arguments of an earlier launch"

    def launch() -> None:
        execute(arguments)
        place.buffer = results[0]
        destroy(place)

    return launch
