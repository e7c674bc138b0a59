"""Preloading and checking NVIDIA's libraries, with tiny ones that state any version."""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from plugrt.errors import Internal, PluginIncompatible, PlugrtError
from plugrt.plugins import LibraryPlugin
from plugrt_cuda import driver, library, nvidia_libraries, versions
from plugrt_cuda.plugin import CudaPlugin
from support.clib import needs_cc
from support.watched_calls import at_calls

pytestmark = needs_cc

GOOD = {
    "CUDA runtime": 12090, "cuDNN": 91002, "cuFFT": 11401, "cuPTI": 28, "cuBLAS": 120903,
    "cuSPARSE": 12510, "cuSOLVER": 11705,
}  # fmt: skip
FUNCTIONS = {rule.name: rule for rule in (*versions.RULES, *versions.ADVICE)}


def source(name: str, version: int, status: int = 0) -> str:
    """Returns C code with the function that states the version of a component."""
    rule = FUNCTIONS[name]
    if rule.plain:
        return f"unsigned long {rule.plain}(void) {{ return {version}; }}"
    if rule.getter:
        return f"int {rule.getter}(int* out) {{ *out = {version}; return {status}; }}"
    major, minor, _ = rule.weights
    parts = f"{{{version // major}, {version % major // minor}, {version % minor}}}"
    return (
        f"int {rule.property_getter}(int which, int* out) "
        f"{{ int parts[] = {parts}; *out = parts[which]; return {status}; }}"
    )


Compile = Callable[[str], Path]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Returns a function that compiles C code to a shared library, once for each text."""
    folder = tmp_path_factory.mktemp("compiled")

    @cache
    def make(code: str) -> Path:
        file = folder / f"{make.cache_info().currsize}.so"
        command = ["cc", "-x", "c", "-", "-shared", "-fPIC", "-o", str(file)]
        subprocess.run(command, input=code, check=True, text=True)
        return file

    return make


class Wheels:
    """A folder ``nvidia`` with libraries made by hand."""

    def __init__(self, root: Path, compiled: Compile) -> None:
        self.root, self.compiled = root, compiled

    def add(self, name: str, version: int, cuda: int = 12, status: int = 0) -> None:
        component = next(c for c in nvidia_libraries.COMPONENTS if c.name == name)
        shelf = component.folder if cuda == 12 or component.own else f"cu{cuda}"
        folder = self.root / shelf / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        for file in component.files[cuda]:
            shutil.copy(self.compiled(source(name, version, status)), folder / file)

    def good(self, cuda: int = 12, **changed: int) -> dict[str, nvidia_libraries.Loaded]:
        """Adds good versions but for those given (spaces as underscores), and loads all."""
        self.fill(cuda, **changed)
        return self.load(cuda)

    def fill(self, cuda: int = 12, **changed: int) -> None:
        for name, version in GOOD.items():
            self.add(name, changed.get(name.replace(" ", "_"), version), cuda)

    def load(self, cuda: int = 12) -> dict[str, nvidia_libraries.Loaded]:
        return nvidia_libraries.preload(cuda, [self.root])


@pytest.fixture
def wheels(tmp_path: Path, compiled: Compile) -> Wheels:
    return Wheels(tmp_path, compiled)


def test_versions_are_read_from_the_libraries(wheels: Wheels) -> None:
    report = versions.check(wheels.good(), 12, [90])
    assert report.versions == GOOD
    assert report.faults == []
    assert report.warnings == []


def test_wheels_for_cuda_13_share_a_folder(wheels: Wheels) -> None:
    loaded = wheels.good(13)
    assert loaded["cuBLAS"].path.endswith("cu13/lib/libcublas.so.13")
    assert loaded["cuDNN"].path.endswith("cudnn/lib/libcudnn.so.9")
    assert versions.check(loaded, 13, [90]).faults == []


def test_all_that_is_missing_is_named_with_its_package() -> None:
    none = {
        c.name: nvidia_libraries.Loaded(c, fault="not here") for c in nvidia_libraries.COMPONENTS
    }
    with pytest.raises(PluginIncompatible) as caught:
        versions.require(none, 12, "jax-cuda12-pjrt 0.10.2", [])
    text = str(caught.value)
    for part in ("cudnn", "cublas", "cuda-runtime", "cusparse", "cufft", "cuda-cupti"):
        assert f"the package nvidia-{part}-cu12 has it" in text
    assert "jax-cuda12-pjrt 0.10.2" in text
    assert "plugrt[cuda12]" in text
    assert "JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1" in text


@pytest.mark.parametrize(
    ("name", "version", "minimum"),
    [("CUDA runtime", 12000, 12010), ("cuPTI", 17, 18), ("cuBLAS", 120099, 120100),
     ("cuSPARSE", 12099, 12100)],
)  # fmt: skip
def test_outdated_libraries_are_refused(
    wheels: Wheels, name: str, version: int, minimum: int
) -> None:
    loaded = wheels.good(**{name.replace(" ", "_"): version})
    [fault] = versions.check(loaded, 12, []).faults
    assert f"is version {version}; at least {minimum} is needed" in fault
    assert name in fault


def test_an_old_cusolver_is_only_warned_of(
    wheels: Wheels, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = wheels.good(cuSOLVER=11000)
    with caplog.at_level(logging.WARNING, "plugrt.plugins"):
        versions.require(loaded, 12, "x", [])
    assert "cuSOLVER" in caplog.text


def test_a_library_that_refuses_to_answer_is_a_fault(wheels: Wheels) -> None:
    wheels.fill()
    wheels.add("cuFFT", 11402, status=7)
    [fault] = versions.check(wheels.load(), 12, []).faults
    assert "cufftGetVersion returned status 7" in fault


@pytest.mark.parametrize(
    ("cudnn", "cublas", "capabilities", "words"),
    [
        (91000, 120500, [90], "9.10.0 reorders"),
        (90800, 120900, [90, 90], "on several GPUs"),
        (90800, 120900, [90], ""),
        (90800, 120800, [90, 90], ""),
        (91001, 120900, [90, 90], ""),
    ],
)
def test_pairs_that_compute_wrong_numbers(
    wheels: Wheels, cudnn: int, cublas: int, capabilities: list[int], words: str
) -> None:
    loaded = wheels.good(cuDNN=cudnn, cuBLAS=cublas)
    faults = versions.check(loaded, 12, capabilities).faults
    assert bool(faults) is bool(words)
    assert words in "".join(faults)


@pytest.mark.parametrize(
    ("options", "refused"),
    [({}, True), ({"visible_devices": [0, 1]}, True), ({"visible_devices": [1]}, False)],
)
def test_gpus_that_are_not_used_do_not_count(
    wheels: Wheels, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], refused: bool
) -> None:
    loaded = wheels.good(cuDNN=90800, cuBLAS=120900)
    monkeypatch.setattr(nvidia_libraries, "preload", lambda cuda: loaded)
    monkeypatch.setattr(driver, "compute_capabilities", lambda: [90, 90])
    monkeypatch.setattr(library, "find_library", lambda _: library.Found("l.so", "a wheel", 12))
    fits = at_calls([LibraryPlugin.create_client], Mock(side_effect=Internal("they fit")))
    with pytest.raises(PlugrtError, match="on several GPUs" if refused else "they fit"), fits:
        CudaPlugin().create_client(options)


@pytest.mark.parametrize(
    ("cublas", "capability", "warned"),
    [(120800, 100, True), (130100, 110, True), (130200, 100, False), (120900, 90, False),
     (120900, 120, False)],
)  # fmt: skip
def test_tensor_memory(wheels: Wheels, cublas: int, capability: int, warned: bool) -> None:
    report = versions.check(wheels.good(cuBLAS=cublas), 12, [capability])
    assert report.faults == []
    assert any("Tensor Memory" in w for w in report.warnings) is warned


def test_loaded_and_missing_libraries_are_recorded(wheels: Wheels) -> None:
    wheels.add("cuDNN", 91002)
    loaded = wheels.load()
    assert loaded["cuDNN"].path == str(wheels.root / "cudnn/lib/libcudnn.so.9")
    assert list(loaded) == [c.name for c in nvidia_libraries.COMPONENTS]
    for name, one in loaded.items():  # the system may have other libraries
        assert bool(one.path) is (one.library is not None)
        assert one.path or one.component.files[12][0] in one.fault, name
