"""Packed models give the function's results: of named inputs, padded batches, and a state."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import plugrt
from plugrt.errors import (
    ArgumentError,
    ArgumentMismatch,
    ArgumentTypeError,
    DataLoss,
    DeletedBuffer,
    Incompatible,
    ProgramError,
)
from support.distributions import run_python
from support.effort import EFFORT
from support.jax_oracle import jax
from support.models import (
    SCALE,
    WEIGHTS,
    changed_signatures,
    damaged,
    pack_sum,
    read_signature,
    resign,
)

BACKEND = plugrt.get_backend()
NAME = os.environ.get("JAX_PLATFORMS", "cpu")
[BATCH] = jax.export.symbolic_shape("batch")
X = np.linspace(-2, 3, 33, dtype=np.float32).reshape(11, 3)


def dense(params: Any, x: Any) -> Any:
    hidden = jnp.tanh(x @ params["w"] + params["b"])
    return {"hidden": hidden, "sum": hidden.sum(1)}


def export(function: Any, *shapes: Any) -> Any:
    def struct(shape: Any) -> Any:
        if isinstance(shape, dict):
            return {name: struct(each) for name, each in shape.items()}
        return jax.ShapeDtypeStruct(shape, np.float32)

    checks = [jax.export.DisabledSafetyCheck.platform()]
    return jax.export.export(jax.jit(function), platforms=["cpu"], disabled_checks=checks)(
        *map(struct, shapes)
    )


DENSE = export(dense, {"w": (3, 8), "b": (8,)}, (BATCH, 3))


def pack_dense(path: Path, **options: Any) -> None:
    plugrt.pack_model(
        path, DENSE, names=("params", "x"), weights={"params": WEIGHTS},
        **{"buckets": {"batch": (1, 4)}} | options,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["model", "model.zip"])
def test_a_model_gives_the_functions_results(tmp_path: Path, name: str) -> None:
    pack_dense(tmp_path / name)
    moved = tmp_path / "moved"
    shutil.move(tmp_path / name, moved)
    model = plugrt.load_model(moved)
    model.warm_up()
    assert model.buckets == ({"batch": 1}, {"batch": 4})
    assert model.inputs == ("x: float32[batch,3]",)
    assert "model 'dense'" in repr(model)
    for count in (1, 2, 3, 4):
        for given in (X[:count], plugrt.device_put(X[:count])):
            found, wanted = model(x=given), dense(WEIGHTS, X[:count])
            assert found.keys() == wanted.keys() == {*model.returned}
            for key, array in found.items():
                assert array.device == model.device
                np.testing.assert_allclose(np.asarray(array), wanted[key], rtol=1e-5, atol=1e-6)


def test_an_argument_that_the_program_drops_is_no_input(tmp_path: Path) -> None:
    first = export(lambda x, unused: x + 1, (3,), (2,))
    plugrt.pack_model(tmp_path / "m", first, names="xu", weights={"u": np.zeros(2, np.float32)})
    assert plugrt.load_model(tmp_path / "m").inputs == ("x: float32[3]",)


WRONG_CALLS: dict[str, Any] = {
    "no x": {},
    "unknown y and no x": {"y": X},
    "containers": {"x": [X]},
    r"\[11, 2\]": {"x": X[:, :2]},
    r"'batch': 11.*the buckets": {"x": X},
    r"given int32\[4,3\]": {"x": np.zeros((4, 3), np.int32)},
}


def test_wrong_calls_say_what_is_taken(tmp_path: Path) -> None:
    pack_dense(tmp_path / "model", check=False)
    model = plugrt.load_model(tmp_path / "model")
    for words, given in WRONG_CALLS.items():
        with pytest.raises(ArgumentMismatch, match=words):
            model(**given)
    with pytest.raises(ArgumentMismatch, match="without a name"):
        model(X[:4])
    pack_dense(tmp_path / "exact", pad=())
    exact = plugrt.load_model(tmp_path / "exact")
    assert exact(x=X[:4])["sum"].shape == (4,)
    with pytest.raises(ArgumentMismatch, match="does not pad batch"):
        exact(x=X[:3])


def test_an_output_feeds_an_input_of_the_next_call(tmp_path: Path) -> None:
    pack_sum(tmp_path / "sum.zip")
    model = plugrt.load_model(tmp_path / "sum.zip")
    other, x = model.session(), np.float32([1, 1, 1])
    assert [model(x=x).tolist() for _ in range(3)] == [[1, 2, 3], [2, 4, 6], [3, 6, 9]]
    assert other(x=x).tolist() == [1, 2, 3]
    kept = model.state["total"]
    assert kept.tolist() == [3, 3, 3]
    given = plugrt.device_put(np.float32([5, 5, 5]))
    assert model(x=x, total=given).tolist() == [6, 12, 18]
    if BACKEND.capabilities.donation:
        assert given.is_deleted()
    model.state["total"].delete()  # as if a call had failed after it donated the state
    with pytest.raises(DeletedBuffer, match=r"state 'total' of model .*reset\(\)"):
        model(x=x)
    assert model(x=x, total=np.float32([0, 0, 0])).tolist() == [1, 2, 3]
    model.reset()
    assert model(x=x).tolist() == [1, 2, 3]


def test_a_state_without_a_first_value_is_given_once(tmp_path: Path) -> None:
    plugrt.pack_model(
        tmp_path / "m", SCALE, names=("w", "x", "s"), outputs=("y", "t"), feeds={"t": "s"},
        weights={"w": np.ones(3, np.float32)},
    )  # fmt: skip
    model, x = plugrt.load_model(tmp_path / "m"), np.float32([1, 2, 3])
    with pytest.raises(ArgumentMismatch, match="no s"):
        model(x=x)
    assert model(x=x, s=np.zeros(3, np.float32)).tolist() == [1, 2, 3]
    assert model(x=x).tolist() == [2, 4, 6]


def test_padding_that_changes_results_is_refused(tmp_path: Path) -> None:
    mean = export(lambda x: x - x.mean(0), (BATCH, 3))
    with pytest.raises(ArgumentError, match=r"'batch' is padded from 4 to 8.*check=False"):
        plugrt.pack_model(tmp_path / "m", mean, buckets={"batch": [8]})
    plugrt.pack_model(tmp_path / "m", mean, buckets={"batch": [8]}, pad=())
    with pytest.raises(FileExistsError, match="new folder"):
        plugrt.pack_model(tmp_path / "m", mean, buckets={"batch": [8]}, pad=())


def test_without_a_backend_a_warning_says_that_nothing_was_compared(tmp_path: Path) -> None:
    source = tmp_path / "mean.export"
    source.write_bytes(export(lambda x: x - x.mean(0), (BATCH, 3)).serialize())
    code = "import sys, plugrt; plugrt.pack_model(*sys.argv[1:], buckets={'batch': [8]})"
    blocked = ",".join(row.name for row in plugrt.plugins.table())
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m"), str(source)],
        env={**os.environ, "PLUGRT_PLUGINS_BLOCK": blocked, "JAX_PLATFORMS": ""},
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert "its results were not compared: no installed plugin" in done.stderr
    assert plugrt.load_model(tmp_path / "m").inputs


WRONG_PACKS: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (ArgumentError, r"weights params\.v are no", {"weights": {"params": {"v": X}}}),
    (ArgumentError, r"params\.w is float32\[11,3\]", {"weights": {"params": {"w": X}}}),
    (ArgumentTypeError, "not an array", {"weights": {"params": {"w": object()}}}),
    (ArgumentError, "2 arguments", {"names": "abcd"}),
    (ArgumentError, "dimension variables", {"buckets": {}}),
    (ArgumentError, "positive integers", {"buckets": {"batch": [0]}}),
    (ArgumentError, "pad names", {"pad": ["b"]}),
    (ArgumentError, "feeds the input", {"feeds": {"sum": "x"}}),
    (ArgumentError, "names of inputs", {"names": ("", "w"), "weights": {}}),
]


@pytest.mark.parametrize(("kind", "words", "options"), WRONG_PACKS, ids=lambda x: str(x)[:30])
def test_programs_that_make_no_model_are_refused(
    tmp_path: Path, kind: type[Exception], words: str, options: dict[str, Any]
) -> None:
    given = {"names": ("params", "x"), "buckets": {"batch": [1]}} | options
    with pytest.raises(kind, match=words):
        plugrt.pack_model(tmp_path / "m", DENSE, **given)
    assert not (tmp_path / "m").exists()


def test_programs_that_no_model_is_made_of(tmp_path: Path) -> None:
    hlo = plugrt.xla_computation(lambda x: x)(X)
    with pytest.raises(ProgramError, match="format 'hlo'"):
        plugrt.pack_model(tmp_path / "m", hlo)
    with pytest.raises(ArgumentError, match=r"keys \['a', 'b'\]; 'main' has 3 dynamic dim"):
        plugrt.pack_model(tmp_path / "m", OPEN_SCALE, buckets={"a": [1], "b": [2]})
    doubled = b"""func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32> }"""
    with pytest.raises(ProgramError, match=r"has a dimension of 202 for {'n': 101} and of 422"):
        plugrt.pack_model(tmp_path / "m", doubled, buckets={"n": [4]})
    buckets = {"a": [2], "b": [3], "c": [3]}
    with pytest.raises(ArgumentError, match="do not fit each other: main: its operations do not"):
        plugrt.pack_model(tmp_path / "m", OPEN_SCALE, buckets=buckets)


OPEN_SCALE = SCALE.replace(b"3xf32", b"?xf32")


def test_dynamic_dimensions_of_stablehlo_have_the_sizes_of_buckets(tmp_path: Path) -> None:
    plugrt.pack_model(
        tmp_path / "m", OPEN_SCALE, names="wxs", outputs=("scaled", "sum"), buckets={"n": (2, 4)}
    )
    model = plugrt.load_model(tmp_path / "m")
    assert model.inputs == ("s: float32[n]", "w: float32[n]", "x: float32[n]")
    assert model.buckets == ({"n": 2}, {"n": 4})
    assert [*model.outputs] == ["scaled: float32[n]", "sum: float32[n]"]
    for count in (1, 2, 3, 4):
        w, x, s = X[:count].T
        found = model(w=w, x=x, s=s)
        np.testing.assert_array_equal(found["scaled"], w * (x + s))
        np.testing.assert_array_equal(found["sum"], x + s)


def test_each_dynamic_dimension_of_stablehlo_may_have_a_name(tmp_path: Path) -> None:
    text = b"""func.func public @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
      %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xf32>) -> tensor<?x?xf32>
      return %0 : tensor<?x?xf32> }"""
    plugrt.pack_model(tmp_path / "m", text, names="x", buckets={"rows": (4, 16), "columns": (3,)})
    model = plugrt.load_model(tmp_path / "m")
    assert (*model.inputs, *model.outputs) == (
        "x: float32[rows,columns]", "output: float32[columns,rows]",
    )  # fmt: skip
    np.testing.assert_array_equal(model(x=X), X.T)


FIRST_CALL = """
import sys
import numpy as np
import plugrt
result = plugrt.load_model(sys.argv[1])(x=np.ones(3, np.float32)).tolist()
unneeded = (
    "numpy.ma", "plugrt.distributed.initialization", "plugrt.programs.compiled_program",
    "plugrt.programs.exported", "plugrt.execution.compilation.compilation_cache",
)
print(result, [name for name in unneeded if name in sys.modules])
"""


def test_a_saved_executable_is_loaded_and_one_of_another_version_compiled_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if not BACKEND.capabilities.executable_serialization:
        pytest.skip(f"{NAME} does not declare executable_serialization")
    whole = tmp_path / "whole"
    pack_sum(whole, executables=[NAME])
    x = np.float32([1, 1, 1])
    with caplog.at_level(logging.WARNING, "plugrt"):
        assert plugrt.load_model(whole)(x=x).tolist() == [1, 2, 3]
    assert caplog.records == []
    here = {k: v for k, v in os.environ.items() if k.startswith(("JAX_P", "PJRT_"))}
    here["TF_CPP_MIN_LOG_LEVEL"] = "3"  # without it libraries write to stderr
    done = run_python(FIRST_CALL, arguments=(str(whole),), **here)
    assert (done.stdout, done.stderr) == ("[1.0, 2.0, 3.0] []\n", "")
    [file] = (whole / "executables").iterdir()
    title, _, rest = file.read_bytes().partition(b"\n")
    old = title.rpartition(b" ")[0] + b" 999\n" + rest
    pack_sum(tmp_path / "m.zip", executables=[NAME])
    resign(tmp_path / "m.zip", tmp_path / "old.zip", {f"executables/{file.name}": old})
    with caplog.at_level(logging.WARNING, "plugrt"):
        assert plugrt.load_model(tmp_path / "old.zip")(x=x).tolist() == [1, 2, 3]
    [record] = caplog.records
    assert "compiled again" in record.getMessage()
    assert "\n" not in record.getMessage()


def test_files_that_are_no_model_of_this_device(tmp_path: Path) -> None:
    np.savez(tmp_path / "arrays.zip", X)
    (tmp_path / "text").write_text("text")
    (tmp_path / "folder").mkdir()
    for name, words in (
        ("arrays.npz.zip", "model.json"),
        ("text", "not a model"),
        ("folder", "model.json"),
    ):
        path = tmp_path / name
        if name.startswith("arrays"):
            (tmp_path / "arrays.zip.npz").rename(path)
        with pytest.raises(Incompatible, match=words):
            plugrt.load_model(path)
    with pytest.raises(FileNotFoundError):
        plugrt.load_model(tmp_path / "nothing")
    pack_sum(tmp_path / "m.zip")
    stated = read_signature(tmp_path / "m.zip")
    stated["programs"][0]["platforms"] = ["abacus"]
    resign(tmp_path / "m.zip", tmp_path / "abacus.zip", {}, stated)
    with pytest.raises(Incompatible, match=r"packed for abacus; it cannot run on .*Fix"):
        plugrt.load_model(tmp_path / "abacus.zip")
    with pytest.raises(ArgumentTypeError, match="not both"):
        plugrt.load_model(tmp_path / "m.zip", device=plugrt.devices()[0], backend=NAME)


def test_damaged_models_are_data_loss(tmp_path: Path) -> None:
    pack_sum(tmp_path / "m.zip")
    whole, found = (tmp_path / "m.zip").read_bytes(), Counter[str]()
    for each in damaged(whole, 150 * EFFORT, 1):
        (tmp_path / "damaged.zip").write_bytes(each)
        found[judge(tmp_path / "damaged.zip")] += 1
    assert {*found} <= {"DataLoss", "Incompatible", "right"}
    assert found["DataLoss"] > 100 * EFFORT


def test_changed_signatures_are_data_loss_or_consistent(tmp_path: Path) -> None:
    pack_sum(tmp_path / "m.zip")
    found = Counter[str]()
    for signature in changed_signatures(tmp_path / "m.zip", 50 * EFFORT, 2):
        resign(tmp_path / "m.zip", tmp_path / "changed.zip", {}, signature)
        found[judge(tmp_path / "changed.zip")] += 1
    assert {*found} <= {"DataLoss", "Incompatible", "ArgumentMismatch", "right", "other"}
    assert found["DataLoss"] > 20 * EFFORT


def judge(path: Path) -> str:
    """Loads and calls the model of `pack_sum`; returns "right", "other" or the error's name.

    "other" stands for the results of a consistent signature with other names or another state.
    """
    try:
        found = plugrt.load_model(path)(x=np.float32([1, 1, 1]))
    except (DataLoss, Incompatible, ArgumentMismatch) as error:
        return type(error).__name__
    return "right" if np.asarray(found).tolist() == [1, 2, 3] else "other"
