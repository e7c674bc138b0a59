"""Dumps of programs: the files, their contents, and an unwritable folder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import config, jit, pmap, serialize_executable
from plugrt.errors import ConfigError
from support.behaviour import behaviour

X = np.arange(3, dtype=np.float32)
ALL = ("stablehlo", "hlo", "optimized")


def files_in(folder: Path) -> dict[str, str]:
    """Returns the texts by file name, without the process's and the file's number."""
    found = {}
    numbers = []
    for path in sorted(folder.iterdir()):
        matched = re.fullmatch(rf"plugrt_{os.getpid()}_(\d{{4,}})_(.*)", path.name)
        assert matched, path.name
        numbers.append(int(matched[1]))
        found[matched[2]] = path.read_text()
    assert len({*numbers}) == len(numbers)
    return found


@behaviour(10, "`dump_ir_to` writes the StableHLO of each program that is handed to a backend")
def test_programs_of_all_kinds_are_written(tmp_path: Path) -> None:
    def dumped(x: Any) -> Any:
        return x + 41

    text = jit(lambda x: x - 42).lower(X).as_text()
    folder = tmp_path / "new" / "folder"
    with config.override(dump_ir_to=str(folder)):
        jit(dumped)(X)
        jit(lambda x: x * 43).lower(X).compile()
        pmap(lambda x: x * 44)(X[None])
        plugrt.compile(text)(X)
    found = files_in(folder)
    assert "stablehlo.add" in found["dumped_stablehlo.mlir"]
    assert "module @jit_dumped" in found["dumped_stablehlo.mlir"]
    assert len([*folder.iterdir()]) == 4
    assert any("stablehlo.subtract" in text for text in found.values())


@behaviour(
    10,
    "`dump_ir_modes` says which stages are written: StableHLO, HLO, and the backend's result",
    jax="the modes stablehlo, jaxpr and eqn_count_pprof: of these the last two are JAX's own",
)
def test_stages(tmp_path: Path) -> None:
    def staged(x: Any) -> Any:
        return x * x - 45

    with config.override(dump_ir_to=str(tmp_path), dump_ir_modes=ALL):
        compiled = jit(staged).lower(X).compile()
    found = files_in(tmp_path)
    assert "stablehlo.subtract" in found["staged_stablehlo.mlir"]
    assert found["staged_hlo.hlo"].startswith("HloModule jit_staged")
    assert found["staged_optimized.txt"] == compiled.as_text()
    numbers = sorted(tmp_path.iterdir())
    assert [path.name.rpartition("_")[2].partition(".")[0] for path in numbers] == [*ALL]


@behaviour(
    10,
    "executables that were saved are written when they are loaded, in the backend's form",
    jax="writes none of them",
)
def test_saved_executables(tmp_path: Path) -> None:
    def saved(x: Any) -> Any:
        return x * x - 49

    compiled = jit(saved).lower(X).compile()
    parts = serialize_executable.serialize(compiled)
    file = tmp_path / "program"
    file.write_bytes(plugrt.compile(jit(saved).lower(X).as_text()).serialize())
    with config.override(dump_ir_to=str(tmp_path / "in"), dump_ir_modes=ALL):
        serialize_executable.deserialize_and_load(*parts)
        plugrt.compile(file)
    found = files_in(tmp_path / "in")
    assert len([*(tmp_path / "in").iterdir()]) == 2
    assert found["saved_optimized.txt"] == compiled.as_text()
    assert found["program_optimized.txt"]


@behaviour(10, "names of functions become safe names of files")
@pytest.mark.parametrize("name", ["../../up", "/etc/x", "a b\n", "ü" * 200, "<lambda>", ".."])
def test_names_are_safe(tmp_path: Path, name: str) -> None:
    def function(x: Any) -> Any:
        return x + len(name)

    function.__name__ = name
    folder = tmp_path / "in"
    with config.override(dump_ir_to=str(folder)):
        jit(function)(X)
    [path] = folder.iterdir()
    assert [*tmp_path.iterdir()] == [folder]
    assert re.fullmatch(r"[\w.-]+", path.name, re.ASCII)
    assert len(path.name) < 150


@behaviour(
    10,
    "a folder that cannot be written is a warning that names it, and the call goes on",
    jax="JAX warns as well",
)
def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        config.override(dump_ir_to=str(tmp_path / "file" / "below")),
        pytest.warns(UserWarning, match=r"JAX_DUMP_IR_TO.* was not written \(.*Error") as found,
    ):
        np.testing.assert_array_equal(jit(lambda x: x + 46)(X), X + 46)
    assert found[0].filename == __file__


def test_modes_of_jax_are_passed_over_and_others_refused(tmp_path: Path) -> None:
    with config.override(dump_ir_to=str(tmp_path), dump_ir_modes="jaxpr,eqn_count_pprof"):
        jit(lambda x: x + 47)(X)
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(ConfigError, match=r"'mhlo'.*stablehlo, hlo and optimized"):
        config.update("dump_ir_modes", "stablehlo,mhlo")
