"""Loops that launch without waiting, for child processes: XLA ends the process of a hang."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from support.platforms import platform_environment

SETUP = """
import sys, threading
import numpy as np
import plugrt
from plugrt import array_api as xp, lax

steps = int(sys.argv[1])
devices = plugrt.local_devices()
n = len(devices)

def spread(function, **options):
    return plugrt.pmap(function, axis_name="i", devices=devices, **options)

place = spread(lambda a: a + 0)
mean = lambda w, x: w - 0.1 * lax.pmean(w * x, "i")
"""

KINDS = {
    # An ordinary training loop, with placed inputs.
    "loop": """
step = spread(mean)
w, x = place(np.ones((n, 16), "f4")), place(np.full((n, 16), 1e-6, "f4"))
for _ in range(steps):
    w = step(w, x)
assert np.allclose(np.asarray(w), (1 - 1e-7) ** steps, rtol=1e-2)
""",
    "donated": """
step = spread(mean, donate_argnums=0)
w, x = place(np.ones((n, 16), "f4")), place(np.full((n, 16), 1e-6, "f4"))
for _ in range(steps):
    w = step(w, x)
assert np.allclose(np.asarray(w), (1 - 1e-7) ** steps, rtol=1e-2)
""",
    # The results are dropped.
    "dropped": """
step = spread(mean)
w, x = place(np.ones((n, 16), "f4")), place(np.full((n, 16), 1e-6, "f4"))
for _ in range(steps):
    step(w, x)
assert np.allclose(np.asarray(step(w, x)), 1, rtol=1e-2)
""",
    "deleted": """
step = spread(mean)
w, x = place(np.ones((n, 16), "f4")), place(np.full((n, 16), 1e-6, "f4"))
for _ in range(steps):
    step(w, x).delete()
assert np.allclose(np.asarray(step(w, x)), 1, rtol=1e-2)
""",
    # Several collectives in a program, of several kinds, and programs in turn.
    "kinds": """
programs = [
    spread(lambda v: lax.psum(lax.pmax(v, "i"), "i") / n),
    spread(lambda v: lax.ppermute(v, "i", [(j, (j + 1) % n) for j in range(n)])),
    spread(lambda v: xp.mean(lax.all_gather(v, "i"), axis=0)),
    spread(lambda v: lax.all_to_all(v[:n], "i", 0, 0)),
]
v = place(np.ones((n, n), "f4"))
for step in range(steps):
    v = programs[step % len(programs)](v)
assert np.array_equal(np.asarray(v), np.ones((n, n)))
""",
    # Launches without a collective wait in the same queues.
    "between": """
step, plain = spread(mean), spread(lambda t, w: xp.sin(t) * w)
w, x = place(np.ones((n, 10_000), "f4")), place(np.full((n, 10_000), 1e-6, "f4"))
t = w
for _ in range(steps // 10):
    w = step(w, x)
    for _ in range(9):
        t = plain(t, w)
assert np.isfinite(np.asarray(t)).all()
""",
    # Launches on one device wait there as well.
    "single": """
step, alone = spread(mean), plugrt.jit(lambda t, a: xp.sin(t) * a)
w, x = place(np.ones((n, 20_000), "f4")), place(np.full((n, 20_000), 1e-6, "f4"))
t = alone(w[0], w[0])
for _ in range(steps // 10):
    w = step(w, x)
    first = w[0]
    for _ in range(9):
        t = alone(t, first)
assert np.isfinite(np.asarray(t)).all()
""",
    "threads": """
programs = [spread(mean), spread(lambda w, x: lax.pmax(w, "i") + 0 * x)]
x, errors = place(np.full((n, 16), 1e-6, "f4")), []

def work(number):
    try:
        w = place(np.ones((n, 16), "f4"))
        for step in range(steps // 3):
            w = programs[(step + number) % 2](w, x)
        assert np.allclose(np.asarray(w), 1, rtol=1e-2)
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not errors, errors
""",
}


def run(devices: int, kinds: Sequence[str], steps: int, **more: str) -> None:
    """Runs loops on some devices of the tests' platform, one after the other in one child.

    A failure shows stderr, and the names of the loops that ended.
    """
    env = {**os.environ, **platform_environment(), "TF_CPP_MIN_LOG_LEVEL": "3"}
    for name in ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS", "JAX_PJRT_CLIENT_CREATE_OPTIONS"):
        env.pop(name, None)
    if env["JAX_PLATFORMS"] == "cpu":
        env["JAX_NUM_CPU_DEVICES"] = str(devices)
    else:
        env["JAX_PJRT_CLIENT_CREATE_OPTIONS"] = f"cpu_device_count:{devices}"
    loops = "".join(f"{KINDS[kind]}print({kind!r}, flush=True)\n" for kind in kinds)
    code = f"{SETUP}assert n == {devices}\n{loops}"
    done = subprocess.run(
        [sys.executable, "-c", code, str(steps)],
        env={**env, **more},
        capture_output=True,
        text=True,
        timeout=500,  # XLA ends a process that hangs after 40 s
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, list(kinds)), done.stderr[-4000:]
