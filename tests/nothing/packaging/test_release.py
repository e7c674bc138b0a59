"""`make release` refuses distributions that do not belong together, and a wrong tag."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from plugrt.capi.loading import exception_guard
from support.markdown import ROOT, load_script
from support.requirements import needs

RELEASE = load_script("tools/release.py")
ALL = (
    "plugrt",
    "plugrt-cpu",
    "plugrt-cuda",
    "plugrt-numpy",
    "plugrt-remote",
    "plugrt-tpu",
    "plugrt-sdk",
)
CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-12-01\n"


def distribution(
    folder: Path,
    name: str,
    version: str,
    *requires: str,
    in_c: tuple[str, ...] | None = None,
    code: bytes = b"__cxa_begin_catch",
    without: str = "",
) -> list[Path]:
    """Makes a wheel and an sdist with their metadata, and files named like the parts in C.

    ``in_c`` are the wheel's files in C, each with the content ``code``; a wheel without any is
    pure. The sdist lacks the file ``without``.
    """
    in_c = RELEASE.IN_C.get(name, ()) if in_c is None else in_c
    sources = core_of(name) if in_c else set()
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}"]
    text = "\n".join([*lines, *(f"Requires-Dist: {r}" for r in requires)]).encode() + b"\n"
    stem = f"{name.replace('-', '_')}-{version}"
    tag = "cp311-abi3-manylinux2014_x86_64" if in_c else "py3-none-any"
    wheel, sdist = folder / f"{stem}-{tag}.whl", folder / f"{stem}.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{stem}.dist-info/METADATA", text)
        for part in in_c:
            archive.writestr(f"{part}.abi3.so", code)
    with tarfile.open(sdist, "w:gz") as archive_of_sources:
        for file in (f"{stem}/PKG-INFO", f"{stem}/src/{stem}.egg-info/PKG-INFO"):
            entry = tarfile.TarInfo(file)
            entry.size = len(text)
            archive_of_sources.addfile(entry, io.BytesIO(text))
        for file in sources - {without}:
            archive_of_sources.addfile(tarfile.TarInfo(f"{stem}/{file}"))
    return [wheel, sdist]


@cache
def core_of(name: str) -> set[str]:
    """Returns the sources in C of a distribution, in its folder."""
    project = RELEASE.WITH_CORE.get(name)
    listed = RELEASE.sources_of(f"{project}/core") if project else ()
    return {file.removeprefix(f"{project}/") for file in listed}


def release(folder: Path, **requires: str) -> list[Path]:
    """Makes all distributions in version 0.2.0; each but plugrt requires it, by default bounded."""
    made = distribution(folder, "plugrt", "0.2.0", "numpy>=2")
    for name in ALL[1:]:
        needed = requires.get(name.removeprefix("plugrt-"), "plugrt>=0.2.0,<0.3")
        made += distribution(folder, name, "0.2.0", needed)
    return made


def test_a_wheel_is_built_once_of_the_same_sources_and_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    built: list[bytes] = []

    def build(project: str, sources: Path, out: Path, *formats: str) -> None:
        built.append((tmp_path / project / "a.c").read_bytes())
        (out / "made.whl").write_bytes(built[-1])

    (tmp_path / "uv.lock").touch()
    (source := tmp_path / "plugins/cpu/a.c").parent.mkdir(parents=True)
    out = tmp_path / "out"
    for text, compiler, builds in (
        (b"1", "cc", 1), (b"1", "cc", 1), (b"2", "cc", 2), (b"2", "false", 3), (b"1", "cc", 4)
    ):  # fmt: skip
        source.write_bytes(text)
        monkeypatch.setenv("CC", compiler)
        RELEASE.put_wheel("plugins/cpu", tmp_path / "copy", out, tmp_path, build)
        assert (out / "made.whl").read_bytes() == text
        assert len(built) == builds
    assert len([*(tmp_path / RELEASE.KEPT).rglob("*.whl")]) == 1, "older ones stay"


def test_a_release_that_fits_together(tmp_path: Path) -> None:
    assert list(RELEASE.faults(release(tmp_path), "0.2.0")) == []


@pytest.mark.parametrize(
    ("requirement", "says"),
    [
        ("plugrt", "no bound from 0.2.0 on"),
        ("plugrt>=0.1.0,<0.3", "no bound from 0.2.0 on"),
        ("plugrt>=0.2.0", "no upper bound"),
        ('plugrt>=0.2.0 ; python_version < "4"', "no upper bound"),
    ],
)
def test_a_requirement_without_bounds(tmp_path: Path, requirement: str, says: str) -> None:
    found = list(RELEASE.faults(release(tmp_path, cuda=requirement), "0.2.0"))
    assert found
    assert all("plugrt_cuda" in fault for fault in found)
    assert any(says in fault for fault in found)


def test_a_distribution_that_is_missing_or_of_another_version(tmp_path: Path) -> None:
    made = release(tmp_path)
    [missing] = RELEASE.faults(made[:-1], "0.2.0")
    assert "plugrt-sdk has ['whl']" in missing
    assert any("7 distributions" in f for f in RELEASE.faults(made[:-2], "0.2.0"))
    assert sum("0.2.0, not 0.2.1" in f for f in RELEASE.faults(made, "0.2.1")) == len(made)


def test_a_wheel_that_lacks_what_is_in_c(tmp_path: Path) -> None:
    """A wheel built without a compiler, or for one Python only: pip would still install it."""
    made = release(tmp_path)
    (tmp_path / "other").mkdir()
    pure, bare = distribution(tmp_path / "other", "plugrt", "0.2.0", "numpy>=2", in_c=())
    assert list(RELEASE.faults([*made, pure], "0.2.0")) == []  # beside the wheel for a platform

    assert "plugrt has ['gz']" in next(RELEASE.faults([pure, *made[1:]], "0.2.0"))
    [fault] = RELEASE.faults([made[0], bare, *made[2:]], "0.2.0")
    assert fault.startswith(f"{bare.name} lacks core/")
    assert fault.endswith(f"({len(core_of('plugrt'))} files): it builds no such core")
    with zipfile.ZipFile(pure, "a") as archive:
        archive.writestr("plugrt/_core.abi3.so", b"")
    [fault] = RELEASE.faults([*made, pure], "0.2.0")
    assert fault == f"{pure.name} has parts in C, which are for one kind of machine"
    pure, _ = distribution(tmp_path / "other", "plugrt", "0.2.0", "numpy>=2", in_c=())
    empty = pure.rename(pure.with_name(made[0].name))
    [fault] = RELEASE.faults([empty, *made[1:]], "0.2.0")
    assert fault.endswith("has no plugrt/_core.abi3.so: it was built without a C compiler")
    one = made[0].rename(made[0].with_name(made[0].name.replace("cp311-abi3", "cp311-cp311")))
    [fault] = RELEASE.faults([one, *made[1:]], "0.2.0")
    assert fault == f"{one.name} is not for cp311-abi3, which serves Python 3.11 and later"


def test_a_core_that_catches_no_exceptions(tmp_path: Path) -> None:
    """A core built without a C++ compiler, or from an sdist without the file in C++."""
    made = release(tmp_path)
    assert {"core/module.c", "core/library/trampolines.cc", "core/sources.h"} <= core_of("plugrt")
    (tmp_path / "other").mkdir()
    for file in ("core/library/trampolines.cc", "core/values/numbers.c", "core/pjrt.h"):
        wheel, sdist = distribution(
            tmp_path / "other", "plugrt", "0.2.0", "numpy>=2", code=b"PyInit", without=file
        )
        [fault] = RELEASE.faults([made[0], sdist, *made[2:]], "0.2.0")
        assert fault == f"{sdist.name} lacks {file} (1 files): it builds no such core"
        [fault] = RELEASE.faults([wheel, *made[1:]], "0.2.0")
        assert "catches no exceptions of libraries: it was built without a C++ compiler" in fault


def test_a_wheel_that_the_index_would_refuse(tmp_path: Path) -> None:
    made = release(tmp_path)
    for other in ("linux_x86_64", "linux_aarch64", "any.linux_x86_64"):
        name = made[0].name.replace("manylinux2014_x86_64", other)
        made[0] = made[0].rename(tmp_path / name)
        [fault] = RELEASE.faults(made, "0.2.0")
        assert fault == f"{name} has no manylinux tag: it is for one Linux, PyPI refuses it"
        made[0] = made[0].rename(tmp_path / name.replace(other, "manylinux2014_x86_64"))


def test_a_wheel_is_replaced_by_what_auditwheel_makes_of_it(tmp_path: Path) -> None:
    wheel, _ = distribution(tmp_path, "plugrt", "0.2.0")
    wheel = wheel.rename(tmp_path / "plugrt-0.2.0-cp311-abi3-linux_x86_64.whl")
    runs: list[tuple[Any, ...]] = []

    def run(*command: Any) -> None:
        runs.append(command)
        made = Path(command[command.index("--wheel-dir") + 1])
        (made / "plugrt-0.2.0-cp311-abi3-manylinux_2_17_x86_64.whl").write_text("tagged")

    tagged = RELEASE.tag_for_index(wheel, run)
    assert [*tmp_path.glob("*.whl")] == [tagged]
    assert tagged.name == "plugrt-0.2.0-cp311-abi3-manylinux_2_17_x86_64.whl"
    assert (tagged.read_text(), runs[0][:2]) == ("tagged", ("auditwheel", "repair"))


def test_a_tag_is_the_version_and_has_a_section() -> None:
    RELEASE.check_tag("v0.2.0", "0.2.0", CHANGELOG)
    with pytest.raises(SystemExit, match=r"pyproject\.toml states 0\.2\.1"):
        RELEASE.check_tag("v0.2.0", "0.2.1", CHANGELOG)
    with pytest.raises(SystemExit, match="no section"):
        RELEASE.check_tag("v0.2", "0.2", CHANGELOG)


def test_it_builds_every_project() -> None:
    files = [*ROOT.glob("*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]
    assert set(RELEASE.PROJECTS) == {f.parent.relative_to(ROOT).as_posix() for f in files}


@pytest.mark.parametrize(
    ("tags", "glibc"),
    [
        ("manylinux_2_34_x86_64", (2, 34)),
        ("manylinux1_x86_64.manylinux_2_5_x86_64", (2, 5)),
        ("manylinux2014_aarch64", (2, 17)),
        ("Tag: cp311-cp311-manylinux_2_27_x86_64\nTag: cp311-cp311-manylinux_2_28_x86_64", (2, 27)),
        ("py3-none-any", (0, 0)),
    ],
)
def test_the_glibc_that_tags_ask_for(tags: str, glibc: tuple[int, int]) -> None:
    assert RELEASE.glibc_of(tags) == glibc


def test_a_wheel_that_needs_a_newer_glibc_than_jaxlib(tmp_path: Path) -> None:
    """On older systems pip would install the pure wheel, and no Python plugin would reach JAX."""
    own = RELEASE.glibc_of_jaxlib()
    assert own >= (2, 17)
    found = list(RELEASE.faults(release(tmp_path), "0.2.0", (2, 16)))
    assert len(found) == len(RELEASE.IN_C)
    assert all("needs glibc 2.17, jaxlib 2.16" in fault for fault in found)


LIBRARIES = [
    file
    for folder, parts in (("runtime/src", "plugrt"), ("plugin_sdk/src", "plugrt-sdk"))
    for part in RELEASE.IN_C[parts]
    if (file := ROOT / folder / f"{part}.abi3.so").exists()
]


@needs(exception_guard.CATCHES, "a core with its part in C++")
def test_a_core_in_c_plus_plus_is_known_by_its_symbols() -> None:
    core = ROOT / "runtime/src" / f"{RELEASE.CATCHING}.abi3.so"
    assert b"__cxa_begin_catch" in core.read_bytes()


@needs(shutil.which("objdump"), "objdump, of binutils")
@needs(LIBRARIES, "the parts in C, which a C compiler builds")
def test_the_parts_in_c_run_wherever_jaxlib_does() -> None:
    """On any build machine: the symbols that moved in glibc 2.34 have older versions.

    The C++ runtime's symbols are at most of manylinux_2_17, since libstdc++ of GCC 11 has newer
    ones.
    """
    for file in LIBRARIES:
        command = ["objdump", "-T", file]
        symbols = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = {(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)}
        assert max(found) <= RELEASE.glibc_of_jaxlib(), file
        of_cxx = re.findall(r"(CXXABI|GLIBCXX)_(\d+)\.(\d+)(?:\.(\d+))?", symbols)
        newest = {"CXXABI": (1, 3, 7), "GLIBCXX": (3, 4, 19)}
        for runtime, *numbers in of_cxx:
            assert tuple(int(number or 0) for number in numbers) <= newest[runtime], file
