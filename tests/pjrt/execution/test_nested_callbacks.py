"""Python functions that programs call and that launch programs: they run or are refused.

They run on jaxlib's client and on XLA's CPU library, in children that are ended if they hang.
"""

from __future__ import annotations

import itertools

import pytest

from pjrt.execution.nested_callbacks import CASES, HANDED, KINDS, SHARDED
from support.apart import runs_apart
from support.distributions import run_python
from support.xla_cpu import needs_library

PLATFORMS = ("cpu", pytest.param("xla_cpu", marks=needs_library))

REPORTED = """
import numpy as np, plugrt
from plugrt import array_api as xp

inner = plugrt.jit(lambda m: xp.matmul(m, m) + 1)
host = lambda m: np.asarray(inner(plugrt.device_put(np.asarray(m))))
outer = plugrt.jit(
    lambda m: xp.sum(plugrt.pure_callback(host, plugrt.ShapeDtypeStruct(m.shape, m.dtype), m * 2))
)
m = xp.ones((300, 300))
try:
    print([float(v) for v in [outer(m * i) for i in range(LAUNCHES)]][-1])
except plugrt.errors.PjrtError as error:
    print(error)
"""


def _run(kind: str, size: int, platform: str) -> dict[tuple[str, ...], str]:
    """Returns case to result: "ran", "refused", or the fault."""
    done = run_python(
        f"from pjrt.execution.nested_callbacks import main; main({kind!r}, {str(size)!r})",
        timeout=300,
        JAX_PLATFORMS=platform,
        JAX_NUM_CPU_DEVICES="4" if kind == "devices" else "1",
        TF_CPP_MIN_LOG_LEVEL="3",
    )
    assert done.returncode == 0, done.stderr
    words = 2 if kind == "devices" else 3
    lines = [line.split(" ", words) for line in done.stdout.splitlines()]
    return {tuple(line[:words]): line[words] for line in lines}


@runs_apart("lifetimes")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("launches", [2, 20])
def test_the_reported_programs_end(launches: int, platform: str) -> None:
    code = REPORTED.replace("LAUNCHES", str(launches))
    done = run_python(code, timeout=100, JAX_PLATFORMS=platform, TF_CPP_MIN_LOG_LEVEL="3")
    assert done.returncode == 0, done.stderr
    if platform == "cpu":
        scale = 4 * (launches - 1) ** 2
        assert float(done.stdout) == pytest.approx(300 * 300 * (300 * scale + 1), rel=1e-4)
    else:
        assert "'<lambda>' of pure_callback" in done.stdout
        assert "Fix: compute with NumPy in the function" in done.stdout


@runs_apart("lifetimes")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("size", CASES)
@pytest.mark.parametrize("kind", [*KINDS, HANDED])
def test_launches_within_callbacks_never_hang(kind: str, size: int, platform: str) -> None:
    found = _run(kind, size, platform)
    assert len(found) == len(CASES[size])
    for (_, _, threads), result in found.items():
        if platform == "cpu":
            assert result == "ran"
        elif size == 300:
            assert result == "refused"
        elif threads == "1":  # small programs run within the call that launches them
            assert result == "ran"
        else:  # unless another thread's launch is in front of them
            assert result in ("ran", "refused")


@runs_apart("lifetimes")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("size", CASES)
def test_launches_on_several_devices_within_others_are_refused(size: int, platform: str) -> None:
    found = _run("devices", size, platform)
    expected = {
        (outer, inner): "ran" if "jit" in (outer, inner) else "refused"
        for outer, inner in itertools.product(SHARDED, SHARDED)
    }
    if platform == "xla_cpu" and size == 300:
        expected["jit", "jit"] = "refused"
    assert found == expected


HANDS_OVER = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np, plugrt
from plugrt import array_api as xp
from plugrt.execution.executables import calling_launch

calling_launch.PATIENCE = 0.5
pool = ThreadPoolExecutor(20)
inner = plugrt.jit(lambda m: xp.matmul(m, m) + 1)
host = lambda m: pool.submit(lambda: np.asarray(inner(plugrt.device_put(m)))).result()
shape = plugrt.ShapeDtypeStruct((300, 300), "float32")
outer = plugrt.jit(lambda m: xp.sum(plugrt.pure_callback(host, shape, xp.matmul(m, m))))
m = xp.ones((300, 300))
try:
    print([float(v) for v in [outer(m * i) for i in range(12)]][1])
except plugrt.errors.PjrtError as error:
    print(error)
"""


@pytest.mark.parametrize("platform", PLATFORMS)
def test_launches_of_other_threads_in_a_callback_end(platform: str) -> None:
    done = run_python(HANDS_OVER, timeout=100, JAX_PLATFORMS=platform, TF_CPP_MIN_LOG_LEVEL="3")
    assert done.returncode == 0, done.stderr
    if platform == "cpu":
        assert float(done.stdout) == pytest.approx(300 * 300 * (300**3 + 1), rel=1e-4)
    else:
        assert "'<lambda>' of pure_callback" in done.stdout
        assert "launches a program on the device of the program that calls it" in done.stdout


@runs_apart("lifetimes")
def test_launches_one_after_another_within_a_callback_are_no_nesting() -> None:
    """Each launch has ended before the next; the calling launch continues."""
    code = """
import numpy as np, plugrt
from plugrt import array_api as xp
shape = plugrt.ShapeDtypeStruct((300, 300), "float32")
leaf = plugrt.jit(lambda m: plugrt.pure_callback(lambda v: v, shape, xp.matmul(m, m)))
def host(m):
    for _ in range(60):
        np.asarray(leaf(plugrt.device_put(m)))
    return m
outer = plugrt.jit(lambda m: plugrt.pure_callback(host, shape, xp.matmul(m, m)))
late = plugrt.jit(lambda m: plugrt.lax.fori_loop(0, 300, lambda _, v: xp.matmul(v, v), m))
print(float(outer(late(xp.zeros((300, 300))))[0, 0]))
"""
    done = run_python(code, timeout=100, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
    assert float(done.stdout) == 0, done.stderr


@needs_library
@runs_apart("lifetimes")
def test_the_cure_of_the_refusal_works() -> None:
    code = REPORTED.replace("xp.matmul(m, m) + 1)", 'xp.matmul(m, m) + 1, backend="cpu")')
    code = code.replace("device_put(np.asarray(m))", 'device_put(m, plugrt.devices("cpu")[0])')
    code = code.replace("LAUNCHES", "20")
    done = run_python(code, timeout=100, JAX_PLATFORMS="xla_cpu,cpu", TF_CPP_MIN_LOG_LEVEL="3")
    assert float(done.stdout) == pytest.approx(300 * 300 * (300 * 4 * 19**2 + 1), rel=1e-4)
