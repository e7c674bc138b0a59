"""Preloading and checking NVIDIA's libraries, with tiny ones that state any version."""

from __future__ import annotations

import logging
import shutil
import subprocess
from pathlib import Path

import pytest

from plugrt.errors import PluginIncompatible
from plugrt_cuda import components, versions

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

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


class Wheels:
    """A folder ``nvidia`` with libraries made by hand."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(self, name: str, version: int, cuda: int = 12, status: int = 0) -> None:
        component = next(c for c in components.COMPONENTS if c.name == name)
        shelf = component.folder if cuda == 12 or component.own else f"cu{cuda}"
        folder = self.root / shelf / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        for file in component.files[cuda]:
            # A soname of its own: the loader gives a second library of one soname the first's code.
            flags = ["-shared", "-fPIC", f"-Wl,-soname,{abs(hash((self.root, file)))}", "-o", file]
            subprocess.run(
                ["cc", "-x", "c", "-", *flags], cwd=folder, check=True, text=True,
                input=source(name, version, status),
            )  # fmt: skip

    def loaded(self, cuda: int = 12) -> dict[str, components.Loaded]:
        return components.preload(cuda, [self.root])


def made(root: Path, **changed: int) -> Wheels:
    """Returns wheels of good versions, but for those given (spaces as underscores)."""
    wheels = Wheels(root)
    for name, version in GOOD.items():
        wheels.add(name, changed.get(name.replace(" ", "_"), version))
    return wheels


def test_versions_are_read_from_the_libraries(tmp_path: Path) -> None:
    report = versions.check(made(tmp_path).loaded(), 12, [90])
    assert report.versions == GOOD
    assert report.faults == []
    assert report.warnings == []


def test_wheels_for_cuda_13_share_a_folder(tmp_path: Path) -> None:
    wheels = Wheels(tmp_path)
    for name, version in GOOD.items():
        wheels.add(name, version, cuda=13)
    loaded = wheels.loaded(13)
    assert loaded["cuBLAS"].path.endswith("cu13/lib/libcublas.so.13")
    assert loaded["cuDNN"].path.endswith("cudnn/lib/libcudnn.so.9")
    assert versions.check(loaded, 13, [90]).faults == []


def test_all_that_is_missing_is_named_with_its_package() -> None:
    none = {c.name: components.Loaded(c, fault="not here") for c in components.COMPONENTS}
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
def test_what_is_too_old_is_refused(tmp_path: Path, name: str, version: int, minimum: int) -> None:
    wheels = made(tmp_path, **{name.replace(" ", "_"): version})
    [fault] = versions.check(wheels.loaded(), 12, []).faults
    assert f"is version {version}; at least {minimum} is needed" in fault
    assert name in fault


def test_an_old_cusolver_is_only_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = made(tmp_path, cuSOLVER=11000).loaded()
    with caplog.at_level(logging.WARNING, "plugrt.plugins"):
        versions.require(loaded, 12, "x", [])
    assert "cuSOLVER" in caplog.text


def test_a_library_that_refuses_to_answer_is_a_fault(tmp_path: Path) -> None:
    wheels = made(tmp_path)
    wheels.add("cuFFT", 11401, status=7)
    [fault] = versions.check(wheels.loaded(), 12, []).faults
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
    tmp_path: Path, cudnn: int, cublas: int, capabilities: list[int], words: str
) -> None:
    loaded = made(tmp_path, cuDNN=cudnn, cuBLAS=cublas).loaded()
    faults = versions.check(loaded, 12, capabilities).faults
    assert bool(faults) is bool(words)
    assert words in "".join(faults)


@pytest.mark.parametrize(
    ("cublas", "capability", "warned"),
    [(120800, 100, True), (130100, 110, True), (130200, 100, False), (120900, 90, False),
     (120900, 120, False)],
)  # fmt: skip
def test_tensor_memory(tmp_path: Path, cublas: int, capability: int, warned: bool) -> None:
    report = versions.check(made(tmp_path, cuBLAS=cublas).loaded(), 12, [capability])
    assert report.faults == []
    assert any("Tensor Memory" in w for w in report.warnings) is warned


def test_what_is_loaded_and_what_is_not_is_recorded(tmp_path: Path) -> None:
    wheels = Wheels(tmp_path)
    wheels.add("cuDNN", 91002)
    loaded = wheels.loaded()
    assert loaded["cuDNN"].path == str(tmp_path / "cudnn/lib/libcudnn.so.9")
    assert list(loaded) == [c.name for c in components.COMPONENTS]
    for name, one in loaded.items():  # the system may have some
        assert bool(one.path) is (one.library is not None)
        assert one.path or one.component.files[12][0] in one.fault, name
