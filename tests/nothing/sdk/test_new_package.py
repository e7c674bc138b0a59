"""`plugrt new`: accepted names, the written files, and their cleanliness.

tests/cpu/packaging/test_new_packages.py tests the installed packages.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from plugrt import interface
from plugrt.errors import FileRefused, InvalidArgument, PluginBroken, PluginIncompatible
from plugrt.plugins.discovery.installed_plugins import discover
from plugrt_sdk.commands import new
from plugrt_sdk.export import _core, export_library
from plugrt_sdk.new_package import Kind, NewPackage, write_package
from plugrt_sdk.package_names import PackageName
from support.distributions import install

COMMON = [".github/workflows/test.yml", ".gitignore", "LICENSE", "README.md", "pyproject.toml"]


def package(modules: str, tests: str) -> list[str]:
    found = [f"src/deep_chip/{name}" for name in modules.split()]
    return [*COMMON, *found, *(f"tests/{name}.py" for name in tests.split())]


FILES = {
    Kind.PYTHON: package(
        "__init__.py backend.py for_jax.py for_plugrt.py probe.py py.typed",
        "conftest test_conformance test_deep_chip test_under_jax",
    ),
    Kind.LIBRARY: package(
        "__init__.py for_jax.py for_plugrt.py library.py probe.py py.typed",
        "conftest test_conformance test_deep_chip test_under_jax",
    ),
    Kind.CPP: [
        *package(
            "__init__.py backend.py for_jax.py for_plugrt.py kernels.py probe.py py.typed "
            "runtime.py",
            "conftest test_conformance test_deep_chip test_runtime test_under_jax",
        ),
        *("CMakeLists.txt", "cpp/kernels.cc", "cpp/kernels.h", "cpp/runtime.cc", "cpp/runtime.h"),
    ],
    Kind.CPP_STUBS: [
        *package(
            "__init__.py for_jax.py for_plugrt.py library.py probe.py py.typed",
            "conftest test_conformance test_deep_chip test_library test_under_jax",
        ),
        *("CMakeLists.txt", "cpp/api.cc", "cpp/error.cc", "cpp/error.h", "cpp/stubs.h"),
    ],
}
each_kind = pytest.mark.parametrize("kind", FILES, ids=str)
LONGEST = "thirty-characters-of-a-name-ok"


def generate(folder: Path, kind: Kind, name: str = "deep-chip", *, torch_xla: bool = False) -> Path:
    write_package(NewPackage(PackageName(name), kind, folder / name, torch_xla=torch_xla))
    return folder / name


@each_kind
def test_the_files_of_a_package(kind: Kind, tmp_path: Path) -> None:
    written = write_package(NewPackage(PackageName("deep-chip"), kind, tmp_path / "new"))
    assert [str(file) for file in written] == sorted(FILES[kind])
    found = [p for p in (tmp_path / "new").rglob("*") if p.is_file()]
    assert sorted(p.relative_to(tmp_path / "new") for p in found) == written


@each_kind
def test_nothing_of_the_templates_name_is_left(kind: Kind, tmp_path: Path) -> None:
    folder = generate(tmp_path, kind, torch_xla=True)
    text = "".join(p.read_text() for p in folder.rglob("*") if p.is_file())
    assert [
        word for word in ("my-chip", "my_chip", "MyChip", "MY_CHIP", "MY-CHIP") if word in text
    ] == []
    assert all(word in text for word in ("deep-chip", "deep_chip", "DeepChip"))


@pytest.mark.parametrize("name", ["x1", LONGEST])
@each_kind
def test_a_package_is_clean_whatever_its_name(kind: Kind, name: str, tmp_path: Path) -> None:
    folder = generate(tmp_path, kind, name, torch_xla=name == LONGEST)
    for command in (("check",), ("format", "--check")):
        ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "."]
        done = subprocess.run(ruff, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@each_kind
def test_a_package_states_what_it_is_written_for(kind: Kind, tmp_path: Path) -> None:
    folder = generate(tmp_path, kind)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    ours = [r for r in project["dependencies"] if r.startswith("plugrt")]
    assert ours
    assert all(">=" in r and ",<" in r for r in ours), ours
    stated = (folder / "src/deep_chip/for_plugrt.py").read_text()
    assert f"interface_version = {interface.VERSION}" in stated
    assert project["entry-points"].keys() == {"plugrt.plugins", "jax_plugins"}


@each_kind
def test_a_package_for_torch_xla_too(kind: Kind, tmp_path: Path) -> None:
    folder = generate(tmp_path, kind, torch_xla=True)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    found = project["entry-points"]["torch_xla.plugins"]
    assert found == {"deep-chip": "deep_chip.for_torch:DeepChipDevice"}
    assert "class DeepChipDevice(" in (folder / "src/deep_chip/for_torch.py").read_text()


@each_kind
def test_a_package_is_one_plugin_to_plugrt(kind: Kind, tmp_path: Path) -> None:
    folder = generate(tmp_path, kind, torch_xla=True)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert len(project["entry-points"]) == 3
    install(tmp_path / "site", "deep-chip", project["entry-points"])
    (record,) = discover([str(tmp_path / "site")]).records
    assert (record.name, record.source) == ("deep-chip", "plugrt.plugins")


def test_an_existing_library_is_copied_into_its_package(tmp_path: Path) -> None:
    library = export_library("numpy", tmp_path / "vendor.so")
    place = tmp_path / "new"
    write_package(NewPackage(PackageName("mychip"), Kind.LIBRARY, place, library))
    assert (place / "src/mychip/libpjrt_mychip.so").read_bytes() == library.read_bytes()
    with pytest.raises(InvalidArgument, match="--kind library"):
        NewPackage(PackageName("mychip"), Kind.PYTHON, place, library)


OTHER = Path(_core.__file__ or "")
"""A shared library that is no PJRT library."""


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [(None, PluginBroken, "does not exist; the path of a shared library was expected"),
     (b"", PluginBroken, "is empty"), (b"int main;", PluginBroken, "is not a shared library"),
     (b"\x7fELF\xff", PluginBroken, "is not a shared library, or is cut short"),
     (b"PK\3\4", PluginIncompatible, "is a zip archive"),
     (OTHER, PluginBroken, "not a PJRT plugin: it has no function GetPjrtApi")],
    ids=["missing", "empty", "text", "cut", "wheel", "another library"],
)  # fmt: skip
def test_a_file_that_is_no_pjrt_library_is_not_packaged(
    tmp_path: Path, content: bytes | Path | None, error: type[Exception], message: str
) -> None:
    file, place = tmp_path / "vendor.so", tmp_path / "new"
    if content is not None:
        file.write_bytes(content.read_bytes() if isinstance(content, Path) else content)
    with pytest.raises(error, match=f"vendor.so {message}|vendor.so is .*{message}"):
        NewPackage(PackageName("mychip"), Kind.LIBRARY, place, file)
    command = ["mychip", "--kind", "library", "--path", str(place), "--library", str(file)]
    assert CliRunner().invoke(new, command).exit_code != 0
    assert not place.exists()


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("cpu", ["already a platform", "plugrt-cpu", "my_cpu"]),
        ("numpy", ["already a platform", "plugrt-numpy"]),
        ("gpu", ["already a platform"]),
        ("metal", ["already a platform", "my_metal"]),
        ("class", ["keyword"]),
        ("json", ["comes with Python"]),
        ("plugrt", ["installed here already"]),
        ("pytest", ["installed here already", "pytest_device"]),
        ("MyChip", ["lower-case", "try mychip"]),
        ("my chip", ["try my_chip"]),
        ("9000", ["try my_9000"]),
        ("CPU", ["try my_cpu"]),
        ("../x", ["try x"]),
        ("a--b", ["try a_b"]),
        ("chip-", ["try chip"]),
        ("", ["lower-case"]),
        ("é", ["lower-case"]),
        ("x" * 31, ["at most 30", "try " + "x" * 30]),
    ],
)
def test_a_name_that_cannot_be_taken(name: str, facts: list[str]) -> None:
    with pytest.raises(InvalidArgument) as error:
        PackageName(name)
    for fact in (repr(name)[1:-1], *facts):
        assert fact in str(error.value)


@pytest.mark.parametrize("there", ["folder/file", "folder"])
def test_existing_files_are_not_overwritten(there: str, tmp_path: Path) -> None:
    file = tmp_path / there
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    with pytest.raises(FileRefused, match="--path"):
        write_package(NewPackage(PackageName("mychip"), Kind.PYTHON, tmp_path / "folder"))
    assert file.read_text() == "mine"
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [file]


@pytest.mark.parametrize(
    ("kind", "file", "first"),
    [
        ("python", "src/mychip/backend.py", "pip install"),
        ("library", "src/mychip/library.py", "cp "),
        ("cpp", "cpp/runtime.cc", "pip install"),
        ("cpp-stubs", "cpp/api.cc", "export PJRT_HEADER="),
    ],
)
def test_the_command(kind: str, file: str, first: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(new, ["mychip", "--kind", kind, "--path", str(tmp_path / "here")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "here" / file).is_file()
    written, _, next_steps = done.output.partition("Next:\n  ")
    assert f"{tmp_path}/here/{file}" in written
    assert next_steps.startswith(first)
    assert f"pip install {tmp_path}/here" in next_steps
    assert "JAX_PLATFORMS=mychip plugrt doctor" in next_steps
