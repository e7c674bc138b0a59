"""plugrt and one PJRT library, without jaxlib: everything but tracing works."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt as wide
from support.apart import runs_apart
from support.installed import RELEASE, UV, environment, needs_uv, run
from support.markdown import ROOT, load_script
from support.models import pack_sum
from support.xla_cpu import needs_library

pytestmark = [needs_uv, needs_library, runs_apart("packages")]

PREAMBLE = """
import sys
import numpy as np
import pytest_like as pl
import plugrt
from plugrt.errors import *

ADD = '''module @add {
  func.func public @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
    %z = stablehlo.add %x, %y : tensor<3xf32>
    return %z : tensor<3xf32>
  }
}
'''
X = np.float32([1, 2, 3])
"""

HELPER = '''
"""What `pytest.raises` does, in an environment without pytest."""

def raises(kind, function, *words):
    try:
        found = function()
    except kind as error:
        missing = [word for word in words if word not in str(error)]
        assert type(error) is kind and not missing, (type(error), missing, str(error))
        return str(error)
    raise AssertionError(f"{kind.__name__} was expected, not {found!r}")
'''


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment made from the lock's group ``thin`` and the wheel of the runtime."""
    folder = tmp_path_factory.mktemp("thin")
    RELEASE.put_wheel("runtime", folder / "sources", folder / "wheels")
    environment("thin", folder / "venv", *(folder / "wheels").glob("*.whl"))
    (folder / "work").mkdir()
    (folder / "work/pytest_like.py").write_text(HELPER)
    return folder


def size_of(folder: Path) -> int:
    """Returns the bytes in the files of a folder, without bytecode."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return sum(file.stat().st_size for file in files)


def plugrt(place: Path, *arguments: object, code: int = 0, **env: str) -> tuple[str, str]:
    """Runs the command and returns its output on both streams."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", **env}
    command = place / "venv/bin/plugrt"
    done = run(command, *arguments, cwd=place / "work", env=quiet, code=code)
    return done.stdout, done.stderr


def python(place: Path, code: str, **env: str) -> str:
    """Runs code in the environment and returns its output."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", **env}
    return run(
        place / "venv/bin/python", "-W", "error", "-c", PREAMBLE + code,
        cwd=place / "work", env=quiet,
    ).stdout  # fmt: skip


def test_the_environment_is_thin(place: Path) -> None:
    listed = run(UV, "pip", "list", "--format=json", "--python", place / "venv/bin/python").stdout
    names = {row["name"] for row in json.loads(listed)}
    assert {"plugrt", "xla-cpu-pjrt"} <= names
    assert not {n for n in names if n.startswith(("jax", "plugrt-")) or n == "pytest"}
    assert python(place, "print(plugrt.__file__)").startswith(str(place))
    [packages] = (place / "venv/lib").glob("python*/site-packages")
    assert size_of(packages / "plugrt") < 8e6  # 4.6 MB, including the core in C
    assert size_of(packages) - size_of(packages / "xla_plugins") < 120e6  # NumPy is most of it


def test_devices_and_doctor(place: Path) -> None:
    rows = json.loads(plugrt(place, "devices", "--json")[0])
    assert [(row["id"], row["backend"]) for row in rows] == [(i, "xla_cpu") for i in range(4)]
    found = json.loads(plugrt(place, "doctor", "--json")[0])
    states = {row["name"]: row["state"] for row in found["candidates"]}
    assert states == {"xla_cpu": "initialised"}
    assert plugrt(place, "devices", JAX_PLATFORMS="xla_cpu")[0]
    _, error = plugrt(place, "devices", code=1, JAX_PLATFORMS="cpu")
    assert 'pip install "plugrt[cpu]"' in error


def test_run(place: Path) -> None:
    examples = ROOT / "examples"
    plugrt(
        place, "run", examples / "mlp.mlir", "--input", examples / "mlp_input.npy",
        "--output-dir", place / "outputs",
    )  # fmt: skip
    found = np.load(place / "outputs/output_0.npy")
    assert np.mean(found == np.load(examples / "mlp_labels.npy")) > 0.9


def test_exports_of_jax(place: Path) -> None:
    """Also one for several devices; substituting shapes in a module needs jaxlib."""
    exports = ROOT / "tests/nothing/programs"
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.save(place / "x.npy", x)
    np.save(place / "y.npy", x.reshape(8, 4))
    plugrt(
        place, "run", exports / "sharded.export", "--input", place / "x.npy",
        "--input", place / "y.npy", "--output-dir", place / "products",
    )  # fmt: skip
    found = np.load(place / "products/output_0.npy")
    np.testing.assert_array_equal(found, x @ x.reshape(8, 4))
    _, error = plugrt(place, "run", exports / "symbolic.export", code=1)
    assert "has symbolic shapes" in error
    assert 'pip install "plugrt[trace]"' in error


def test_compile_for_a_topology(place: Path) -> None:
    """The library makes no topologies; the error states that, and does not mention jaxlib."""
    program = ROOT / "examples/mlp.mlir"
    _, error = plugrt(place, "compile", program, "--topology", "xla_cpu:x", code=1)
    assert "Topology not supported" in error
    _, error = plugrt(place, "compile", program, "--topology", "tpu:v5e:2x2", code=2)
    assert 'pip install "plugrt[tpu]"' in error


def test_programs_and_arrays(place: Path) -> None:
    python(place, PROGRAMS)


PROGRAMS = """
devices = plugrt.devices()
x = plugrt.device_put(X, devices[2])
assert x.device == devices[2] and x.committed
assert plugrt.device_get({"a": x})["a"].tolist() == [1, 2, 3]
assert "[1., 2., 3.]" in repr(x) and float(plugrt.device_put(np.float64(3))) == 3
assert plugrt.device_put(x, devices[0]).device == devices[0]
assert np.from_dlpack(plugrt.device_put(X)).tolist() == [1, 2, 3]

program = plugrt.load_program(ADD)
for device in devices:
    add = plugrt.compile(program, device=device)
    y = add(X, X)
    assert y.device == device and np.asarray(y).tolist() == [2, 4, 6], y
assert str(add.input_types[0]) == "float32[3]" and len(add.input_types) == 2
assert add.cost_analysis()["flops"] == 3
assert add.memory_analysis().argument_size_in_bytes == 24
assert add(x, y).tolist() == [3, 6, 9]

client = plugrt.get_backend()
loaded = client.deserialize_executable(add.serialize())
buffers = [(client.buffer_from_host(X, device=devices[3]),) for _ in range(2)]
((result,),) = loaded.execute(buffers)
assert result.to_host().tolist() == [2, 4, 6]
assert not [m for m in sys.modules if m.split(".")[0] in ("jax", "jaxlib")]
"""


def test_wrong_programs_and_arguments(place: Path) -> None:
    """Programs get the backend's message, without plugrt's parser; argument types are checked."""
    python(place, WRONG)


WRONG = """
add = plugrt.compile(ADD)
pl.raises(ArgumentMismatch, lambda: add(X, np.int32([1, 2, 3])), "parameter 1: takes float32[3]")
pl.raises(ArgumentMismatch, lambda: add(X, X[:2]), "float32[2]")
pl.raises(ArgumentMismatch, lambda: add(X), "takes 2 arguments")

def compile(source):
    return lambda: plugrt.compile(source)

pl.raises(ProgramError, compile("module @x {\\n oops"), "'main'", "2:2", "error")
pl.raises(ProgramError, compile(ADD.replace("3xf32", "3xf99", 1)), "2:39", "error")
pl.raises(ProgramError, compile(ADD.replace("@main", "@other")), "`main`")
pl.raises(ProgramError, compile(b"ML\\xefRgarbage"), "bytecode")
pl.raises(ProgramError, compile(b"\\0\\1\\2"), "neither StableHLO text nor MLIR bytecode")
pl.raises(ProgramError, compile(b" "), "empty")
assert add(X, X).tolist() == [2, 4, 6]
"""


def test_hlo_runs_and_its_text_says_what_reads_it(place: Path) -> None:
    x = np.float32([1, 2, 3])
    for tupled in (False, True):
        computation = wide.xla_computation(lambda x, y: x + y, tuple_args=tupled)(x, x)
        code = computation.as_serialized_hlo_module_proto().hex()
        python(place, f"HLO, TEXT = bytes.fromhex({code!r}), {computation.as_hlo_text()!r}\n{HLO}")


HLO = """
add = plugrt.compile(HLO)
assert add(X, X).tolist() == [2, 4, 6]
pl.raises(ArgumentMismatch, lambda: add(X, np.int32([1, 2, 3])), "parameter 1: takes float32[3]")
pl.raises(MissingTraceExtra, lambda: plugrt.compile(TEXT), "HLO text", "plugrt[trace]", "Proto")
"""

TRACES = (
    "plugrt.jit(lambda a: a + 1)(X)",
    "plugrt.jit(lambda a: a + 1).lower(X)",
    "plugrt.pmap(lambda a: a + 1)(np.ones((4, 3), np.float32))",
    "x + x", "x[0]", "-x", "x == x", "x.sum()", "x.reshape(3, 1)",
    "plugrt.array_api.sin(x)", "plugrt.array_api.zeros((3,))",
    "plugrt.lax.psum", "plugrt.random.key(0)", "plugrt.compile(ADD).as_text()",
)  # fmt: skip


@pytest.fixture(scope="module")
def said(place: Path) -> dict[str, Any]:
    """Returns the output of each expression, all from one process: starting costs more."""
    code = (
        f"said = {{}}\nx = plugrt.device_put(X)\nfor text in {TRACES!r}:\n"
        "    try:\n        said[text] = f'no error: {eval(text)!r}'\n"
        "    except Exception as error:\n"
        "        said[text] = f'{type(error).__name__}: {error}'\n"
        "import json; print(json.dumps(said))"
    )
    return dict(json.loads(python(place, code)))


@pytest.mark.parametrize("expression", TRACES)
def test_tracing_says_what_to_install(said: dict[str, str], expression: str) -> None:
    assert said[expression].startswith("MissingTraceExtra: ")
    assert 'pip install "plugrt[trace]"' in said[expression]


TRACED = "it is put into programs that are traced here"
NEEDS_JAXLIB = {
    **dict.fromkeys(
        ("plugrt.array_api", "plugrt.lax", "plugrt.random", "plugrt.from_jax", "plugrt.jit",
         "plugrt.pjit", "plugrt.pmap", "plugrt.shard_map", "plugrt.xla_computation",
         "plugrt.sharding.reshard",
         "plugrt.sharding.auto_axes", "plugrt.sharding.explicit_axes",
         "plugrt.sharding.use_abstract_mesh"),
        "it traces functions",
    ),
    **dict.fromkeys(
        ("plugrt.io_callback", "plugrt.pure_callback", "plugrt.with_sharding_constraint",
         "plugrt.smap", "plugrt.device_put_sharded", "plugrt.device_put_replicated"), TRACED
    ),
    "plugrt.debug": f"its callback and print: {TRACED}",
    "plugrt.ffi": f"its ffi_call: {TRACED}",
}  # fmt: skip
"""The public names that cannot be imported without jaxlib, each with the reason."""
IMPORTS = """
import importlib, json
found = {}
def attempt(name, get):
    try:
        return get()
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
for name in MODULES:
    module = attempt(name, lambda: importlib.import_module(name))
    for attribute in getattr(module, "__all__", ()):
        attempt(f"{name}.{attribute}", lambda: getattr(module, attribute))
print(json.dumps(found))
"""


def test_each_public_name_but_those_that_trace_can_be_imported(place: Path) -> None:
    site = load_script("tools/site.py")
    modules = ["plugrt", *(f"plugrt.{name}" for name in site.NAMESPACES), *site.MODULES]
    modules.remove("plugrt_sdk")  # which requires plugrt[trace]
    found = json.loads(python(place, f"MODULES = {modules!r}\n{IMPORTS}"))
    operations = ("plugrt.array_api.", "plugrt.lax.")  # imported at their first use
    names = {n.rpartition(".")[0] if n.startswith(operations) else n for n in found}
    assert names == NEEDS_JAXLIB.keys()
    for name, error in found.items():
        assert error.startswith("MissingTraceExtra: "), (name, error)


SAVE = """
import pickle, sys
import numpy as np
import plugrt
from plugrt import serialize_executable
def f(arguments, *, scale):
    return {"sum": arguments["x"] + arguments["y"], "scaled": scale * arguments["x"]}
x = np.float32([1, 2, 3])
compiled = plugrt.jit(f).lower({"x": x, "y": x}, scale=x).compile()
pickle.dump(serialize_executable.serialize(compiled), open(sys.argv[1], "wb"))
"""
LOAD = """
import pickle
from plugrt import serialize_executable
with open("saved", "rb") as file:
    saved = pickle.load(file)
loaded = serialize_executable.deserialize_and_load(*saved)
found = loaded({"x": X, "y": 2 * X}, scale=np.float32([4, 4, 4]))
assert found["sum"].tolist() == [3, 6, 9] and found["scaled"].tolist() == [4, 8, 12], found
pl.raises(ArgumentTypeError, lambda: serialize_executable.serialize(len), "a compiled function")
assert not [m for m in sys.modules if m.split(".")[0] in ("jax", "jaxlib")]
"""


def test_a_saved_function_is_loaded_with_its_containers(place: Path) -> None:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "xla_cpu"}
    run(sys.executable, "-c", SAVE, place / "work/saved", env=quiet)
    python(place, LOAD)


MODEL = """
model = plugrt.load_model("model.zip")
assert [model(x=X).tolist() for _ in range(2)] == [[1, 4, 9], [2, 8, 18]]
pl.raises(MissingTraceExtra, lambda: plugrt.pack_model("other", ADD), "plugrt[trace]")
assert not [m for m in sys.modules if m.split(".")[0] in ("jax", "jaxlib")]
"""


def test_a_model_is_called_by_name(place: Path) -> None:
    pack_sum(place / "work/model.zip")
    python(place, MODEL)


MESHES = """
from plugrt.sharding import Mesh, NamedSharding, PartitionSpec, get_mesh, set_mesh
mesh = Mesh(plugrt.devices(), ("x",))
with set_mesh(mesh):
    assert get_mesh() == mesh
x = plugrt.device_put(np.arange(8.0), NamedSharding(mesh, PartitionSpec("x")))
assert [part.data.shape for part in x.addressable_shards] == [(2,)] * 4
assert np.asarray(x).tolist() == list(range(8))
"""


def test_meshes_and_shardings(place: Path) -> None:
    python(place, MESHES)
