"""Tests each StableHLO operation on integers and floats of two and four bits, in child processes.

    python tools/narrow_types.py cpu docs/data/narrow_types/0.10.2.json

Writes the verdict for each operation and dtype on a backend: ``right``, ``wrong``, ``refused`` or
``fatal``, with the reason; `docs/generate/narrow_faults.py` then writes the table that plugrt
reads. The NumPy backend computes the expected values. Each pair has its own child process, which
runs several shapes, alone and between other operations, under `FLAGS`; one that ends with a signal
is ``fatal``. With ``--wide`` programs first run through plugrt's pass that computes in int8.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import re
import signal
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from narrow_programs import DTYPES, TRIALS, Writer

from plugrt.errors import PjrtError
from plugrt.execution.compilation.narrow_types import EXCHANGES
from plugrt.interface import Client, CompileOptions, Program

FLAGS = {
    "optimised": "",
    "not optimised": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false",
}
"""XLA flags for all trials; plugrt's tests use the second set."""
REPLICAS = 4


def run(client: Client, program: Writer, replicas: int) -> list[list[np.ndarray[Any, Any]]]:
    """Returns the results of a program on each replica; arguments are rolled by the replica id."""
    options = CompileOptions(num_replicas=replicas)
    from plugrt.programs.parsing import convert_for_client

    code = convert_for_client(Program(program.text().encode()), client)
    if WIDE and client.platform == "cpu":
        from plugrt.stablehlo.eight_bits import INTEGERS, compute_in_eight_bits
        from plugrt.stablehlo.modules import parse, portable_artifact

        module = parse(code.code)
        compute_in_eight_bits(module, INTEGERS)
        version = client.capabilities.stablehlo_current_version
        code = Program(portable_artifact(module, version))
    loaded = client.compile(code, options)
    devices = loaded.addressable_devices
    arguments = []
    for array in program.arguments:
        parts = [np.roll(array, n) if array.ndim else array for n in range(replicas)]
        put = [
            client.buffer_from_host(np.ascontiguousarray(p).reshape(p.shape), d)
            for p, d in zip(parts, devices, strict=True)
        ]
        arguments.append(client.shards(put))
    return [[buffer.to_host() for buffer in result] for result in loaded.execute(arguments)]


WIDE = False


def try_one(name: str, dtype: str, platform: str) -> dict[str, str]:
    """Tests an operation on a dtype in this process; returns the verdict and the reason."""
    import plugrt

    client = plugrt.devices(platform)[0].client
    from plugrt_numpy import plugin

    oracle = plugin.create_client({"num_devices": REPLICAS})
    replicas = REPLICAS if name in EXCHANGES else 1
    for fused in (False, True):
        program = Writer(fused)
        TRIALS[name](program, dtype)
        if not program.results:
            return {}
        try:
            wanted = run(oracle, program, replicas)
        except PjrtError as error:
            return {"verdict": "unknown", "reason": f"NumPy backend: {str(error)[:200]}"}
        for _ in range(5 if replicas > 1 else 1):
            try:
                found = run(client, program, replicas)
            except PjrtError as error:
                return {"verdict": "refused", "reason": str(error).splitlines()[0][:200]}
            for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
                if not all(_same(x, y) for x, y in zip(a, b, strict=True)):
                    kind = program.results[number][1]
                    return {
                        "verdict": "wrong",
                        "reason": f"result {number}, {kind}"
                        + (", between others" if fused else "")
                        + f": {a[0].ravel()[:12]!s}"
                        f", wanted {b[0].ravel()[:12]!s}",
                    }
    return {"verdict": "right"}


def _same(one: Any, two: Any) -> bool:
    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    if one.dtype.kind in "biu" or "int" in one.dtype.name:
        return bool(np.array_equal(one.astype("i8"), two.astype("i8")))
    part = np.complex128 if "complex" in one.dtype.name else np.float64
    a, b = one.astype(part), two.astype(part)
    return bool(
        np.allclose(a, b, rtol=1e-6, equal_nan=True)
        and np.array_equal(np.signbit(a.real), np.signbit(b.real))
    )


def in_child(name: str, dtype: str, platform: str, flags: str) -> dict[str, str]:
    """Returns the result of `try_one` in a child; ``fatal`` if the child ends with a signal."""
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as logged:
        child = os.fork()
        if child == 0:
            os.dup2(logged.fileno(), 1)
            os.dup2(logged.fileno(), 2)
            os.environ["XLA_FLAGS"] = flags
            signal.alarm(300)
            try:
                json.dump(try_one(name, dtype, platform), said)
                said.flush()
            except BaseException as error:  # noqa: BLE001 - the child's end: said to the parent
                json.dump({"verdict": "error", "reason": repr(error)[:300]}, said)
                said.flush()
            finally:
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        said.seek(0)
        text = said.read()
        if os.WIFSIGNALED(status):
            logged.seek(0)
            lines = [
                line
                for line in logged.read().splitlines()
                if "Check failed" in line
                or "LLVM ERROR" in line
                or "free()" in line
                or "Unknown flag" in line
            ]
            reason = lines[-1][-200:] if lines else ""
            return {
                "verdict": "fatal",
                "reason": f"{signal.Signals(os.WTERMSIG(status)).name} {reason}".strip(),
            }
        became: dict[str, str] = json.loads(text)
        return became


def preload(platform: str) -> None:
    """Imports the modules that each child needs, without starting a backend."""
    names = [
        "plugrt.execution.compilation.compiler",
        "plugrt.programs.parsing",
        "plugrt.stablehlo.passes",
        "plugrt_numpy.backend",
    ]
    for name in (*names, "plugrt_cpu.create_client") if platform == "cpu" else names:
        importlib.import_module(name)


def main() -> None:
    """Tests everything on a backend and writes the file."""
    global WIDE
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("platform")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--only", help="a pattern of operations' names")
    parser.add_argument("--wide", action="store_true")
    arguments = parser.parse_args()
    WIDE = arguments.wide
    os.environ["JAX_PLATFORMS"] = arguments.platform
    os.environ["JAX_NUM_CPU_DEVICES"] = str(REPLICAS)
    preload(arguments.platform)
    found: dict[str, dict[str, dict[str, str]]] = {}
    if arguments.only and arguments.file and Path(arguments.file).exists():
        found = json.loads(Path(arguments.file).read_text(encoding="utf-8"))
    for name, dtype in itertools.product(TRIALS, DTYPES):
        if arguments.only and not re.fullmatch(arguments.only, name):
            continue
        for setting, flags in FLAGS.items():
            became = in_child(name, dtype, arguments.platform, flags)
            if not became:
                break
            if became["verdict"] != "right":
                became["setting"] = setting
                break
        if became:
            found.setdefault(name, {})[dtype] = became
            if became["verdict"] != "right":
                print(name, dtype, became, flush=True)
    if arguments.file:
        Path(arguments.file).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
