"""One program with callbacks, run under JAX and under plugrt in a process each."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.behaviour import behaviour

PROGRAM = r"""
import sys
import numpy as np
if sys.argv[1] == "jax":
    import jax as H, jax.numpy as xp
    from jax import lax
    from jax.experimental import io_callback
else:
    import plugrt as H
    from plugrt import array_api as xp, lax
    io_callback = H.io_callback
S = H.ShapeDtypeStruct

def attempt(title, f, *args):
    try:
        result = f(*args)
        H.effects_barrier()
        print(title, np.asarray(result).tolist())
    except Exception as error:
        assert isinstance(error, (RuntimeError, TypeError, ValueError)), error
        print(title, "failed" if isinstance(error, RuntimeError) else "refused")
    try:
        H.effects_barrier()
    except Exception:
        pass

three, x = S((3,), np.float32), np.array([1.5, -2.0, 3.0], np.float32)
attempt("sin", H.jit(lambda x: H.pure_callback(np.sin, three, x)), x)
attempt("eager", lambda x: H.pure_callback(np.sort, three, x), x)
attempt("double", H.jit(lambda x: H.pure_callback(lambda v: np.float64(v) * 2, three, x)), x)
attempt("number", H.jit(lambda x: H.pure_callback(lambda v: 2.5, S((), np.float32), x)), x)
attempt("list", H.jit(lambda x: H.pure_callback(lambda v: [v, v + 1], (three, three), x)[1]), x)
attempt("shape", H.jit(lambda x: H.pure_callback(lambda v: v[:2], three, x)), x)
attempt("dtype", H.jit(lambda x: H.pure_callback(lambda v: v > 0, three, x)), x)
attempt("none", H.jit(lambda x: H.pure_callback(lambda v: None, three, x)), x)
attempt("raises", H.jit(lambda x: H.pure_callback(lambda v: 1 / 0, three, x)), x)
attempt("vmap_method", lambda x: H.pure_callback(np.sin, three, x, vmap_method="no"), x)
attempt("kwargs", H.jit(lambda x: H.pure_callback(lambda a, b: a - b, three, b=x, a=2 * x)), x)
attempt("unused", H.jit(lambda x: (H.pure_callback(lambda v: print("called"), three, x), x)[1]), x)

def loops(x):
    def body(i, x):
        io_callback(lambda i, v: print("step", int(i), v.tolist()), None, i, x, ordered=True)
        H.debug.print("x[0] = {:.3f} {i}", x[0], i=i, ordered=True)
        return x * 2
    x = lax.fori_loop(0, 3, body, x)
    return lax.cond(x[0] > 1, lambda v: io_callback(lambda w: w + 1, three, v), lambda v: v, x)

attempt("loops", H.jit(loops), x)
attempt("print", H.jit(lambda x: (H.debug.print("a {} {b} {{}}", x, b=x[0]), x)[1]), x)
attempt("print static", H.jit(lambda x: (H.debug.print("{} {}", "text", x[2]), x)[1]), x)
attempt("print unused", lambda x: H.debug.print("no value", x), x)
attempt("print twice", H.jit(lambda x: (H.debug.print(ordered=True)("late {}", x[1]), x)[1]), x)
attempt("not callable", lambda x: H.debug.callback(3, x), x)
attempt("empty", H.jit(lambda x: H.pure_callback(lambda v: v, S((0,), np.float32), x[:0])), x)
attempt("scalar", H.jit(lambda x: H.pure_callback(lambda v: v, S((), np.int32), 7)), x)
bf16 = xp.bfloat16 if hasattr(xp, "bfloat16") else np.dtype("bfloat16")
attempt("bfloat16", H.jit(lambda x: H.pure_callback(
    lambda v: v * v, S((3,), bf16), x.astype(bf16)).astype(np.float32)), x)
"""


@behaviour(6, "results, printed lines and refusals are JAX's, on two dozen calls")
def test_a_program_does_what_it_does_under_jax() -> None:
    jax = pytest.importorskip("jax")
    newer = ("late ", "print twice ") if jax.__version_info__ < (0, 10) else ()
    found = {}
    for host in ("jax", "plugrt"):
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, host],
            capture_output=True, text=True, timeout=200, check=False,
            env={**os.environ, "JAX_PLATFORMS": "cpu"} if host == "jax" else None,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        lines = ended.stdout.splitlines()
        found[host] = [line for line in lines if not line.startswith(newer)]
    assert len(found["jax"]) > 25
    assert found["plugrt"] == found["jax"]
