"""``plugrt pack``, ``inspect`` and ``run`` of models, and the files that inputs are read from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt import cli
from plugrt.wire.safetensors import write_arrays
from support.models import SCALE

W, X = np.float32([1, 2, 3]), np.float32([1, 1, 1])


def call(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Runs a command, and returns its stdout, or its stderr where it fails."""
    assert cli._run([*map(str, arguments)]) == code
    out, err = capsys.readouterr()
    return err if code else out


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "sum.mlir").write_bytes(SCALE)
    zeros = np.zeros(3, np.float32)
    (tmp_path / "all.safetensors").write_bytes(write_arrays({"weight": W, "total": zeros}))
    np.savez(tmp_path / "x.npz", x=X)
    np.savez(tmp_path / "two.npz", x=X, y=W)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.safetensors").write_bytes(write_arrays({"x": X}))
    said = call(
        capsys, "pack", tmp_path / "sum.mlir", "-o", tmp_path / "sum.zip",
        "--name", "weight", "--name", "x", "--name", "total", "--result", "y", "--result", "t",
        "--weights", tmp_path / "all.safetensors", "--feed", "t=total",
    )  # fmt: skip
    assert said == f"wrote {tmp_path / 'sum.zip'}\n"
    return tmp_path


@pytest.mark.parametrize("given", ["x={}/x.npy", "{}/x.npz", "{}/x.safetensors", "x={}/two.npz"])
def test_run_takes_inputs_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    out = folder / "out"
    text = call(
        capsys, "run", folder / "sum.zip", "--input", given.format(folder), "--json",
        "--output-dir", out,
    )  # fmt: skip
    facts = json.loads(text)
    assert facts["program"] == "sum"
    assert facts["outputs"] == [
        {"name": "y", "shape": [3], "dtype": "float32", "value": [1.0, 2.0, 3.0]}
    ]
    assert np.load(out / "y.npy").tolist() == [1, 2, 3]
    assert "y: float32[3]" in call(
        capsys, "run", folder / "sum.zip", "--input", given.format(folder)
    )


def test_run_says_which_inputs_a_model_takes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for inputs in ([f"{folder}/x.npy"], [f"x={folder}/x.npy", f"x={folder}/x.npy"]):
        options = [part for each in inputs for part in ("--input", each)]
        assert "--input NAME=FILE" in call(capsys, "run", folder / "sum.zip", *options, code=2)
    assert "no x" in call(capsys, "run", folder / "sum.zip", code=2)
    two = call(capsys, "run", folder / "sum.zip", "--input", f"z={folder}/two.npz", code=2)
    assert "has the arrays ['x', 'y'] and none named 'z'" in " ".join(two.split())
    damaged = folder / "damaged.safetensors"
    damaged.write_bytes((folder / "x.safetensors").read_bytes()[:-1])
    assert "a damaged safetensors file" in call(
        capsys, "run", folder / "sum.zip", "--input", damaged, code=2
    )


def test_inspect_shows_the_signature(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts: Any = json.loads(call(capsys, "inspect", folder / "sum.zip", "--json"))
    assert facts["inputs"] == ["x: float32[3]", "total: float32[3]"]
    assert facts["feeds"] == {"t": "total"}
    assert facts["weights"] == ["weight: float32[3]"]
    [program] = facts["programs"]
    assert (program["bucket"], program["platforms"]) == ({}, [])
    text = call(capsys, "inspect", folder / "sum.zip")
    for words in ("t: float32[3], feeds total", "any call for any platform", "weights     1,"):
        assert words in text
    assert "not a model" in call(capsys, "inspect", folder / "sum.mlir", code=1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--bucket", "batch"], "not NAME=VALUE"),
        (["--bucket", "batch=a"], "not a list of sizes"),
        (["--bucket", "batch=1"], "dimension variables"),
        (["--no-pad", "--name", "a", "--feed", "output0=a", "--feed", "output1=a"], "twice"),
    ],
)
def test_pack_says_what_is_wrong(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    target = folder / "wrong.zip"
    assert says in call(capsys, "pack", folder / "sum.mlir", "-o", target, *options, code=2)
    assert not target.exists()
