"""Python numbers that a dtype cannot hold, powers and ``round``, beside JAX in each x64 mode.

The same calls run on JAX and on plugrt in a child for each mode; the results are compared.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from support.apart import runs_apart
from support.distributions import run_python

pytestmark = [runs_apart("as_jax"), pytest.mark.long]
CALLS = """
import json, sys, warnings
import numpy as np

def outcomes(xp, jit, put, pmap):
    found = {}

    def note(name, call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = np.asarray(call())
                said = [result.dtype.name, result.astype(complex).ravel().tolist().__repr__()]
            except Exception as error:
                kinds = (OverflowError, NotImplementedError, TypeError, ValueError)
                said = [k.__name__ for k in kinds if isinstance(error, k)]
        found[name] = said
        places.update(w.filename for w in caught)
        overflows = any("overflow encountered in cast" in str(w.message) for w in caught)
        warned[name] = overflows or warned.get(name, False)
        return bool(said) and not said[0].endswith("Error")

    def note_jitted(cases):
        # Those that can be traced are one program: compiling each would take most of the time.
        good = {}
        for name, function, x in cases:
            if note(name, lambda: jit(function).trace(x) and 0):
                good[name] = function, x
        functions = [function for function, _ in good.values()]
        results = jit(lambda *xs: [f(x) for f, x in zip(functions, xs)])(
            *[x for _, x in good.values()])
        for name, result in zip(good, results, strict=True):
            note(name, lambda: result)

    i, f = xp.asarray(np.int32([2, -3])), xp.asarray(np.float32([2.5, 3.5]))
    bases = {"i": i, "u": xp.asarray(np.uint8([3])), "b": xp.asarray(np.bool_([1, 0])), "f": f,
             "weak": xp.asarray(3), "0-d": xp.asarray(np.int32(2))}
    exponents = {"-1": -1, "-2": -2, "0": 0, "2": 2, "np -1": np.int32(-1), "0-d": xp.asarray(-1),
                 "-1.0": -1.0, "True": True, "array 0-d": np.array(-1)}
    powers = []
    for (n, x), (m, e) in ((a, b) for a in bases.items() for b in exponents.items()):
        if n == "b" and m in ("0", "2", "True"):
            continue  # int32 in JAX even with x64: test_dtypes_match_jax
        note(f"{n} ** {m}", lambda: x ** e)
        note(f"pow({n}, {m})", lambda: xp.pow(x, e))
        if not m.endswith("0-d"):
            powers.append((f"jit {n} ** {m}", lambda v, e=e: v ** e, x))
            powers.append((f"jit pow({n}, {m})", lambda v, e=e: xp.pow(v, e), x))
    note_jitted(powers)
    note("2 ** -1", lambda: xp.pow(2, -1))
    note("2 ** 0-d", lambda: 2 ** xp.asarray(-1))

    for name, v in {"32": 2**32, "63": 2**63, "64": 2**64, "-63": -(2**63), "-64": -(2**63) - 1,
                    "100": 2**100, "63-1": 2**63 - 1}.items():
        if wide or abs(v) >= 2**63 and v != -(2**63) or narrow:
            note(f"asarray({name})", lambda: xp.asarray(v))
            note(f"asarray([1, {name}])", lambda: xp.asarray([1, v]))
            note(f"put({name})", lambda: put(v))
            note(f"jit({name})", lambda: jit(lambda a: a + 1)(v))
            note(f"i + {name}", lambda: i + v)
            note(f"{name} * f", lambda: v * f)
            note(f"jit f + {name}", lambda: jit(lambda a: a + v)(f))
            note(f"jit f + argument {name}", lambda: jit(lambda a, b: a + b)(f, v))
            note(f"add(1, {name})", lambda: xp.add(1, v))
        if wide:
            for dtype in (np.uint64, np.int64, np.float32):
                note(f"asarray({name}, {dtype.__name__})", lambda: xp.asarray(v, dtype=dtype))
                note(f"asarray([{name}], {dtype.__name__})", lambda: xp.asarray([v], dtype=dtype))
            if 0 <= v < 2**64:
                note(f"np.uint64({name})", lambda: xp.asarray(np.uint64(v)) + np.uint64(1))
                note(f"full({name}, uint64)", lambda: xp.full((2,), v, dtype=np.uint64))

    rounds = []
    for name, a in {"f32": np.float32([1.5, 2.5, -0.55, 1e30, np.nan, np.inf]),
                    "scalar": np.float32(2.567), "f16": np.float16(2.345), "i32": np.int32(1234),
                    "u8": np.uint8([123, 7]), "python": 2.567, "integer": 3,
                    "bool": np.bool_(True)}.items():
        x = xp.asarray(a)
        for n in ((), (None,), (0,), (1,), (2,), (-1,), (40,), (1.0,), (np.int32(1),)):
            note(f"round({name}, {n})", lambda: round(x, *n))
            rounds.append((f"jit round({name}, {n})", lambda v, n=n: round(v, *n), x))
        note(f"xp.round({name}, 1)", lambda: xp.round(x, 1))
    note_jitted(rounds)
    if wide:
        x = xp.asarray(np.array([2.675, 1e300, -0.5]))
        for n in ((), (2,), (300,)):
            note(f"round(f64, {n})", lambda: round(x, *n))

    for name, v in {"1e40": 1e40, "-2e40": -2e40, "3e40j": 3e40j, "inf": float("1e400"),
                    "small": 1e-50, "one": 1.0}.items():
        note(f"f + {name}", lambda: f + v)
        note(f"jit({name})", lambda: jit(lambda a: a + np.float32(1))(v))
        note(f"jit f + {name}", lambda: jit(lambda a: a + v)(f))
        note(f"put({name})", lambda: put(v))
        note(f"pmap({name})", lambda: pmap(lambda a, b: a + b, in_axes=(0, None))(f[:1], v))
        if type(v) is float:
            for dtype in (np.float32, np.float16):
                note(f"asarray({name}, {dtype.__name__})", lambda: xp.asarray(v, dtype=dtype))
                note(f"numpy {name}, {dtype.__name__}",
                     lambda: xp.asarray(np.float64(v), dtype=dtype))
    return found

wide, narrow = sys.argv[1] == "1", sys.argv[1] == "0"
both = {}
places, warned = set(), {}
import jax
both["jax"] = [outcomes(jax.numpy, jax.jit, jax.device_put, jax.pmap), warned]
places, warned = set(), {}
import plugrt, plugrt.array_api
found = outcomes(plugrt.array_api, plugrt.jit, plugrt.device_put, plugrt.pmap)
both["plugrt"] = [found, warned]
both["places"] = sorted(places)
print(json.dumps(both))
"""


@pytest.fixture(scope="module", params=["unset", "0", "1"])
def both(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip("jax")
    x64 = {} if request.param == "unset" else {"JAX_ENABLE_X64": request.param}
    flags = os.environ["XLA_FLAGS"]  # the suite's default, on both sides
    done = run_python(
        CALLS, arguments=(request.param,), JAX_PLATFORMS="cpu", XLA_FLAGS=flags, timeout=400, **x64
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_results_and_errors_match_jax(both: Any) -> None:
    (theirs, _), (ours, _) = both["jax"], both["plugrt"]
    assert len(ours) > 300
    jitted = [said for name, said in ours.items() if name.startswith("jit ")]
    assert sum(bool(said) and not said[0].endswith("Error") for said in jitted) > 100
    differ = {
        name: (ours[name], said)
        for name, said in theirs.items()
        if ours[name] != said and not (said[0].endswith("Error") and said[0] in ours[name])
    }
    assert not differ, "\n".join(f"{k}: {v}" for k, v in differ.items())


def test_a_number_that_becomes_infinity_warns_at_the_users_line(both: Any) -> None:
    assert both["places"] == ["<string>"]
    _, warned = both["plugrt"]
    _, theirs = both["jax"]
    # The fixture keeps the warnings of both, since Python shows each once.
    for name in ("f + 1e40", "jit f + -2e40", "numpy 1e40, float16"):
        assert warned[name] == theirs[name]
    for name, said in warned.items():
        assert not said or any(large in name for large in ("e40", "float16")), name
