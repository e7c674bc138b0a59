"""``plugrt run``: numbers, files, and one-line errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import plugrt
from support.distributions import run_cli

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def _run(*arguments: Any, stdin: Path = Path(os.devnull)) -> subprocess.CompletedProcess[str]:
    shared = ("XLA_FLAGS", "PLUGRT_CACHE_DIR", "COLUMNS", "JAX_NUM_CPU_DEVICES")
    given = {name: os.environ[name] for name in shared if name in os.environ}
    return run_cli("run", *arguments, stdin=stdin, JAX_PLATFORMS="cpu", **given)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_files(tmp_path)
    return tmp_path


def write_files(folder: Path) -> None:
    """Writes programs and arrays, intact and damaged."""

    def f(x: Any) -> Any:
        return jnp.sin(x), x.sum(axis=1)

    (folder / "text.mlir").write_text(jax.jit(f).lower(X).as_text())
    exported = export.export(jax.jit(f))(X).serialize()
    (folder / "export.bin").write_bytes(exported)
    (folder / "cut.export").write_bytes(exported[:-300])
    for_tpu = export.export(jax.jit(f), platforms=["tpu"])(X)
    (folder / "tpu.export").write_bytes(for_tpu.serialize())
    saved = plugrt.compile(folder / "text.mlir", backend="cpu").serialize()
    (folder / "saved.executable").write_bytes(saved)
    foreign = b'plugrt executable 1\n{"platform": "tpu", "sha256": "", "abi": null}\n'
    (folder / "foreign.executable").write_bytes(foreign)
    np.save(folder / "x.npy", X)
    np.savez(folder / "x.npz", x=X)
    np.save(folder / "wide.npy", X.astype(np.float64))
    np.save(folder / "objects.npy", np.array([None, {}]))
    for suffix in ("npy", "npz"):
        (folder / f"cut.{suffix}").write_bytes((folder / f"x.{suffix}").read_bytes()[:-30])
    (folder / "page.md").write_text(f"# A page\n```\n{(folder / 'text.mlir').read_text()}```")
    header = {"descr": "<f4", "fortran_order": False, "shape": (2**55,)}
    with (folder / "huge.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
    os.mkfifo(folder / "fifo")
    (folder / "junk.bin").write_bytes(bytes(range(200)))


@pytest.mark.parametrize(
    ("program", "data"),
    [("text.mlir", "x.npz"), ("export.bin", "x.npy"), ("saved.executable", "x.npy")],
)
def test_it_gives_jaxs_numbers(files: Path, program: str, data: str) -> None:
    out = files / "out"
    done = _run(files / program, "--input", files / data, "--output-dir", out, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    np.testing.assert_allclose(facts["outputs"][0]["value"], np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(np.load(out / "output_0.npy"), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(np.load(out / "output_1.npy"), X.sum(axis=1), rtol=1e-6)
    assert (facts["device"], facts["backend"]) == ("cpu:0", "cpu")


@pytest.mark.parametrize(("program", "data"), [("-", "x.npy"), ("text.mlir", "-")])
def test_a_dash_is_standard_input(files: Path, program: str, data: str) -> None:
    stdin = files / ("export.bin" if program == "-" else "x.npy")
    names = [name if name == "-" else files / name for name in (program, data)]
    done = _run(names[0], "--input", names[1], "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout)["outputs"][0]["value"], np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("of", ["program", "data"])
def test_programs_and_data_are_read_from_pipes(files: Path, of: str) -> None:
    """As a bash user writes it: ``<(command)`` is the path of an open pipe."""
    program = "<(cat text.mlir)" if of == "program" else "text.mlir"
    data = "<(cat x.npy)" if of == "data" else "x.npy"
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m plugrt run {program} --input {data} --json"],
        env={**os.environ, "JAX_PLATFORMS": "cpu"}, cwd=files, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout)["outputs"][0]["value"], np.sin(X), rtol=1e-6)


def test_it_prints_for_people(files: Path) -> None:
    done = _run(files / "text.mlir", "--input", files / "x.npy")
    assert done.returncode == 0, done.stderr
    assert "output 0: float32[2, 3]" in done.stdout
    assert "on backend 'cpu', compiled in" in done.stdout
    assert "compiled in" in done.stdout


WRONG: list[tuple[list[str], int, str]] = [
    (
        ["text.mlir"],
        2,
        "takes 1 arguments (float32[2,3]); called with 0; each parameter is an "
        "--input FILE.npy, in order; there are 0",
    ),
    (["text.mlir", "--input", "wide.npy"], 2, "--input"),
    (["text.mlir", "--input", "objects.npy"], 2, "contains Python objects; an array of numbers"),
    (["text.mlir", "--input", "cut.npy"], 2, "cut.npy is not a whole NumPy file"),
    (["text.mlir", "--input", "cut.npz"], 2, "cut.npz is not a whole NumPy file"),
    (["-", "--input", "-"], 2, "standard input can be read once"),
    (
        ["page.md"],
        2,
        "page.md is not a program: text of StableHLO begins with a module or a func.func, text of "
        "HLO with HloModule; it begins with '# A page'",
    ),
    (["junk.bin"], 2, "it begins with 00 01 02"),
    (["cut.export"], 2, "cut.export is an export of JAX that is damaged or cut short"),
    (["tpu.export"], 1, "'f' was exported for tpu; it cannot run on cpu. Fix: export it with"),
    (
        ["export.bin", "--input", "wide.npy"],
        2,
        "args[0]: takes float32[2,3], called with float64[2,3]",
    ),
    (["export.bin"], 2, "takes 1 arguments (args[0]: float32[2,3]); called with 0"),
    (
        ["foreign.executable"],
        1,
        "'foreign' is an executable that a PJRT library compiled for 'tpu'",
    ),
    (["text.mlir", "--input", "text.mlir"], 2, "is neither a NumPy file"),
    (["x.npy", "--input", "x.npy"], 2, "it is a NumPy array; arrays are arguments"),
    (["nosuch.mlir"], 2, "does not exist"),
    (["fifo"], 2, "fifo: it is a FIFO, not a regular file; expected a file with a program"),
    (["/dev/zero"], 2, "/dev/zero: it is a character device, not a regular file"),
    (["text.mlir", "--input", "fifo"], 2, "it is a FIFO, not a regular file; save the array"),
    (["text.mlir", "--input", "/dev/zero"], 2, "it is a character device, not a regular file"),
    (["text.mlir", "--input", "huge.npy"], 2, "states an array that memory cannot hold"),
    (["text.mlir", "--platform", "nosuch", "--input", "x.npy"], 2, "--platform nosuch requests"),
]
"""Arguments, the exit code, and words of the message."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.mark.parametrize(
    ("words", "code", "says"), WRONG, ids=[" ".join(words) for words, *_ in WRONG]
)
def test_wrong_input_prints_one_readable_line(
    folder: Path, words: list[str], code: int, says: str
) -> None:
    names = {path.name for path in folder.iterdir()}
    done = _run(*(folder / word if word in names else word for word in words))
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")], done.stderr
    assert "Error: " not in done.stderr
    assert "pickle" not in done.stderr


@pytest.mark.parametrize("width", [60, 80])
def test_lines_fit_a_terminal(
    files: Path, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the lines of results, which NumPy breaks between numbers."""
    monkeypatch.setenv("COLUMNS", str(width))
    (tmp_path / "same.mlir").write_text(jax.jit(lambda x: x * 1.5).lower(np.zeros(200)).as_text())
    np.save(tmp_path / "numbers.npy", np.arange(200, dtype=np.float32))
    folder = tmp_path / "a folder of a long name"
    done = _run(
        tmp_path / "same.mlir", "--input", tmp_path / "numbers.npy", "--output-dir", folder
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert all(len(line) <= width or "/" in line for line in lines), done.stdout
    numbers = done.stdout[done.stdout.index("\n[") :].partition("]")[0]
    assert [float(n) for n in numbers.strip("[\n").split()] == [1.5 * i for i in range(200)]
