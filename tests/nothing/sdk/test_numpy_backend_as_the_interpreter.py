"""The NumPy backend's results equal those of StableHLO's interpreter (jaxlib's eval_module).

The interpreter runs in a child process, which it may end. Dtypes that its bindings lack are
omitted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from plugrt.interface import CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient
from plugrt_sdk.testing.program_text import ProgramText
from support.effort import some_of
from support.stablehlo_cases import CASES, ULPS, write
from support.stablehlo_text import assert_close

LACKING = ("bf16", "f8E", "complex<", "i4", "TOTALORDER")
"""Dtypes that the interpreter's bindings lack, and an order that it confuses with another."""
TESTS = Path(__file__).parents[2]
CHILD = """
import sys
from pathlib import Path
import numpy as np
from plugrt.errors import Unimplemented
from plugrt.interface import CompileOptions, Program
from plugrt_reference.backend import Reference
from nothing.sdk.test_numpy_backend_as_the_interpreter import restricted
for name in sys.argv[2:]:
    program = restricted(name)
    try:
        launch = Reference().compile(Program(program.text().encode()), CompileOptions())
        results = launch([[a] for a in program.arguments])
    except Unimplemented as error:
        print(name, error)
        continue
    np.savez(Path(sys.argv[1]) / name, *[shard for [shard] in results])
"""
ENDS_THE_PROCESS = frozenset({"divide", "remainder"})
"""An integer division by zero is a signal in the interpreter."""
FEWEST = 45
NAMES = [name for name in CASES if write(name).without(LACKING).results]


def restricted(name: str) -> ProgramText:
    """Returns a case restricted to the interpreter's features."""
    return write(name).without(LACKING)


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the interpreter's results, a file for each possible case."""
    folder = tmp_path_factory.mktemp("interpreted")
    paths = [str(TESTS), str(TESTS.parent / "examples/plugin-reference/src")]
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), *sorted({*NAMES} - ENDS_THE_PROCESS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stdout + child.stderr[-3000:]
    assert len(list(folder.iterdir())) >= FEWEST, child.stdout
    return folder


@pytest.mark.parametrize("name", some_of([*NAMES], 20))
def test_as_the_interpreter(name: str, interpreted: Path) -> None:
    file = interpreted / f"{name}.npz"
    program = restricted(name)
    client = BackendClient(NumpyBackend(check_types=True))
    executable = client.compile(Program(program.text().encode()), CompileOptions())
    [device] = client.devices()
    puts = [(client.buffer_from_host(a, device),) for a in program.arguments]
    results = [shard.to_host() for [shard] in executable.execute(puts)]
    if not file.exists():  # the interpreter lacks an operation; the NumPy backend still ran it
        return
    with np.load(file) as wanted:
        assert len(results) == len(wanted.files)
        for i, found in enumerate(results):
            assert_close(found, wanted[f"arr_{i}"], f"{name}, result {i}", ULPS.get(name, 8))
