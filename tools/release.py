"""Builds wheels and sdists of all distributions into ``dist/`` and checks them, as for a release.

usage: python tools/release.py [TAG]

With a tag (``v0.2.0``), it must be the version that is stated, and the changelog must have a
section for it. The folder ``dist/`` is an index that pip installs from: ``pip install --find-links
dist "plugrt[cpu]"``; the last check does so, in an empty environment. Nothing is uploaded.
"""

from __future__ import annotations

import email
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from email.message import Message
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).parent / "uv"
KEPT = "build/wheels"
"""The last wheel of each project, in a folder named after a hash of its inputs."""
PROJECTS = (
    "runtime", "plugin_sdk", "plugins/cpu", "plugins/cuda", "plugins/numpy", "plugins/remote",
    "plugins/tpu",
)  # fmt: skip
ABI = "cp311-abi3"
PURE = "py3-none-any"
IN_C = {
    "plugrt": ("plugrt/_core",),
    "plugrt-sdk": (
        "plugrt_sdk/export/_core",
        "plugrt_sdk/export/_library",
        "plugrt_sdk/tracing/_tracer",
    ),
}
"""The files in C of a distribution's platform wheel, which a pure wheel does not have."""
WITH_CORE = {"plugrt": "runtime", "plugrt-sdk": "plugin_sdk"}
"""The projects with a folder ``core/``, all of which their sdists must have."""
CATCHING = "plugrt/_core"
"""The library that catches libraries' C++ exceptions, if a C++ compiler has built it."""
TRY = """
import importlib.metadata, numpy, plugrt, plugrt_sdk
from plugrt.capi.loading.exception_guard import CATCHES
assert CATCHES, "the core was built without a C++ compiler"
assert plugrt.__version__ == importlib.metadata.version("plugrt-cpu")
double = plugrt.jit(lambda x: x + x)
assert double(numpy.float32([1, 2])).tolist() == [2, 4]
from plugrt_sdk.export import export_library
library = export_library("cpu", "libpjrt_cpu.so")
client = plugrt.plugins.LibraryPlugin("exported", library).create_client({})
array = numpy.float32([1, 2])
assert client.buffer_from_host(array, client.devices()[0]).to_host().tolist() == [1, 2]
print(f"installed from {plugrt.__file__}: plugrt {plugrt.__version__} on {plugrt.devices()}")
"""


def version() -> str:
    """Returns the version of all distributions, which the root ``pyproject.toml`` states."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def check_tag(tag: str, stated: str, changelog: str) -> None:
    """Ends the program unless the tag is the version and the changelog has a section for it."""
    if tag != f"v{stated}":
        raise SystemExit(f"the tag is {tag}, but pyproject.toml states {stated}: `nox -s version`")
    if not re.search(rf"^## {re.escape(stated)}( |$)", changelog, re.MULTILINE):
        raise SystemExit(f"CHANGELOG.md has no section `## {stated}`: rename *Unreleased*")


def sources_of(project: str, root: Path = ROOT) -> list[str]:
    """Returns the files of a project from the root, without those that git ignores."""
    listing = ["git", "ls-files", "-co", "--exclude-standard", project]
    listed = subprocess.run(listing, cwd=root, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in listed.splitlines() if (root / name).is_file())


def build(project: str, sources: Path, out: Path, *formats: str, pure: bool = False) -> None:
    """Builds a project from a copy in ``sources``, so that stale files in the tree are not used.

    ``formats`` are ``--sdist`` and ``--wheel``; setuptools is the environment's, not downloaded. A
    ``pure`` wheel has no parts in C.
    """
    for name in sources_of(project):
        copy = sources / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    command = [
        UV, "build", *formats, "--quiet", "--no-build-isolation", "--offline",
        "--python", sys.executable, "--out-dir", out, sources / project,
    ]  # fmt: skip
    environ = {**os.environ, "PLUGRT_BUILD_CORE": "no" if pure else "yes"}
    done = subprocess.run(
        [*map(str, command)], env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{project} cannot be built:\n{done.stdout}{done.stderr}")


def put_wheel(
    project: str,
    sources: Path,
    out: Path,
    root: Path = ROOT,
    build: Callable[[str, Path, Path, str], None] = build,
) -> None:
    """Puts the wheel of a project into ``out``: a kept one of the same sources, or a new one.

    Tests install the same wheels in many environments; `main` builds new ones, and keeps them.
    """
    kept = root / KEPT
    kept.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    with (kept / f"{Path(project).name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = place_of_wheel(project, root)
        if not place.is_dir():
            with tempfile.TemporaryDirectory(dir=kept) as new:
                build(project, sources, Path(new), "--wheel")
                keep_wheel(project, *Path(new).glob("*.whl"), root=root)
        for wheel in place.glob("*.whl"):
            shutil.copy(wheel, out)


def keep_wheel(project: str, wheel: Path, root: Path = ROOT) -> None:
    """Keeps a project's wheel for `put_wheel`, and removes older ones."""
    kept = root / KEPT
    for older in kept.glob(f"{Path(project).name}-*"):
        shutil.rmtree(older)
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept) as new:
        (whole := Path(new) / "whole").mkdir()
        shutil.copy(wheel, whole)
        whole.rename(place_of_wheel(project, root))  # atomically


def place_of_wheel(project: str, root: Path = ROOT) -> Path:
    """Returns the folder for the wheel of the current sources, tools and compiler."""
    digest = hashlib.sha256((root / "uv.lock").read_bytes())
    told = [sys.version, *(f"{n}={os.environ.get(n)}" for n in ("CC", "CFLAGS", "LDFLAGS"))]
    digest.update(repr(told).encode())
    for name in sources_of(project, root):
        digest.update(f"\0{name}\0".encode() + (root / name).read_bytes())
    return root / KEPT / f"{Path(project).name}-{digest.hexdigest()[:32]}"


def run_release_tool(*command: str | Path) -> None:
    """Runs a program of the group ``release`` of the lock file; exits if it fails."""
    runner = [UV, "run", "--isolated", "--locked", "--only-group", "release"]
    subprocess.run([*map(str, [*runner, *command])], check=True, cwd=ROOT)


def tag_for_index(wheel: Path, run: Callable[..., None] = run_release_tool) -> Path:
    """Gives a wheel for Linux the ``manylinux`` tag of the oldest C library that it supports.

    PyPI rejects the tag ``linux_x86_64``. The oldest C library depends on the machine that compiled
    the parts in C: in a manylinux image it is older. Returns the wheel's new path.
    """
    with tempfile.TemporaryDirectory(prefix="plugrt-wheels-") as folder:
        run("auditwheel", "repair", "--wheel-dir", folder, wheel)
        [tagged] = Path(folder).glob("*.whl")
        wheel.unlink()
        return Path(shutil.move(tagged, wheel.parent))


def metadata(distribution: Path) -> Message:
    """Returns the metadata in a wheel or an sdist."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as wheel:
            [name] = [n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")]
            return email.message_from_bytes(wheel.read(name))
    with tarfile.open(distribution) as sdist:
        [name] = [n for n in sdist.getnames() if n.count("/") == 1 and n.endswith("/PKG-INFO")]
        file = sdist.extractfile(name)
        assert file is not None
        return email.message_from_bytes(file.read())


def faults(
    distributions: list[Path], stated: str, jaxlibs: tuple[int, int] | None = None
) -> Iterator[str]:
    """Yields the faults of the distributions of one release.

    ``jaxlibs`` is the glibc that jaxlib needs; by default, of the jaxlib that is installed.
    """
    found = {path.name: metadata(path) for path in distributions}
    names = {message["Name"] for message in found.values()}
    for name in sorted(names):
        own = [path for path in distributions if found[path.name]["Name"] == name]
        kinds = sorted(path.name.rpartition(".")[2] for path in own if not _is_spare(path, name))
        if kinds != ["gz", "whl"]:
            yield f"{name} has {kinds}, and not one wheel and one sdist"
        yield from _faults_in_c(name, own, jaxlibs or glibc_of_jaxlib())
    for file, message in found.items():
        if message["Version"] != stated:
            yield f"{file} has the version {message['Version']}, not {stated}"
        for requirement in message.get_all("Requires-Dist", []):
            other = re.match(r"[\w-]+", requirement)
            assert other is not None
            bounds = requirement.partition(";")[0]
            if other[0] in names - {message["Name"]} and f">={stated}" not in bounds:
                yield f"{file} requires {requirement!r}, which has no bound from {stated} on"
            if other[0] in names - {message["Name"]} and "<" not in bounds:
                yield f"{file} requires {requirement!r}, which has no upper bound"
    if len(names) != len(PROJECTS):
        yield f"there are {sorted(names)}, and not {len(PROJECTS)} distributions"


def _is_spare(distribution: Path, name: str) -> bool:
    """Whether a pure wheel is beside a platform's: for other platforms, and Pythons without GIL."""
    return name in IN_C and distribution.name.endswith(f"-{PURE}.whl")


def _faults_in_c(name: str, distributions: list[Path], jaxlibs: tuple[int, int]) -> Iterator[str]:
    """Yields missing parts in C of a distribution: an installation without them is slow."""
    for path in distributions:
        if name not in IN_C:
            continue
        if _is_spare(path, name):
            with zipfile.ZipFile(path) as wheel:
                if any(file.endswith(".so") for file in wheel.namelist()):
                    yield f"{path.name} has parts in C, which are for one kind of machine"
        elif path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                found = {f: wheel.read(f) for f in wheel.namelist() if f.endswith(".so")}
            if re.search(r"[-.]linux_\w+\.whl$", path.name):
                yield f"{path.name} has no manylinux tag: it is for one Linux, PyPI refuses it"
            if (newer := glibc_of(path.name)) > jaxlibs:
                yield (
                    f"{path.name} needs glibc {_dotted(newer)}, jaxlib {_dotted(jaxlibs)}: between "
                    "them pip takes the pure wheel, and JAX finds no device written in Python. "
                    "`objdump -T` shows the symbols: build on an older system, or name their older "
                    "versions as plugin_sdk/core/old_glibc.h does"
                )
            if f"-{ABI}-" not in path.name:
                yield f"{path.name} is not for {ABI}, which serves Python 3.11 and later"
            for part in IN_C[name]:
                if (code := found.get(f"{part}.abi3.so")) is None:
                    yield f"{path.name} has no {part}.abi3.so: it was built without a C compiler"
                elif part == CATCHING and b"__cxa_begin_catch" not in code:
                    why = "catches no exceptions of libraries: it was built without a C++ compiler"
                    yield f"{path.name} has a {part}.abi3.so that {why}"
        else:
            with tarfile.open(path) as sdist:
                there = {name.partition("/")[2] for name in sdist.getnames()}
            project = WITH_CORE[name]
            sources = {f.removeprefix(f"{project}/") for f in sources_of(f"{project}/core")}
            if lacking := sorted(sources - there):
                words = ", ".join(lacking[:3])
                yield f"{path.name} lacks {words} ({len(lacking)} files): it builds no such core"


def glibc_of(tags: str) -> tuple[int, int]:
    """Returns the oldest glibc that a wheel with such tags runs with; (0, 0) without one."""
    for name, version in (("manylinux1_", "2_5"), ("manylinux2010_", "2_12"),
                          ("manylinux2014_", "2_17")):  # fmt: skip
        tags = tags.replace(name, f"manylinux_{version}_")
    found = re.findall(r"manylinux_(\d+)_(\d+)_", tags)
    return min(((int(major), int(minor)) for major, minor in found), default=(0, 0))


def glibc_of_jaxlib() -> tuple[int, int]:
    """Returns the glibc that the installed jaxlib needs, by the tags in its wheel's metadata."""
    return glibc_of(distribution("jaxlib").read_text("WHEEL") or "")


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def try_out(index: Path) -> None:
    """Installs from ``index`` with pip into an empty environment, and computes something there."""
    with tempfile.TemporaryDirectory(prefix="plugrt-release-") as place:
        subprocess.run([sys.executable, "-m", "venv", f"{place}/venv"], check=True)
        python = f"{place}/venv/bin/python"
        # Compiling all of jaxlib and NumPy needs more time than importing the packages tested here.
        quickly = ["--quiet", "--disable-pip-version-check", "--no-compile"]
        pip = [python, "-m", "pip", "install", *quickly]
        ours = ["--find-links", str(index), f"plugrt[cpu]=={version()}", f"plugrt-sdk=={version()}"]
        subprocess.run([*pip, *ours], check=True, cwd=place)
        subprocess.run([python, "-c", TRY], check=True, cwd=place)


def main(tag: str = "") -> None:
    """Builds, checks and installs the distributions; exits at the first fault."""
    stated = version()
    if tag:
        check_tag(tag, stated, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="plugrt-release-") as sources:
        for project in PROJECTS:
            print(f"building {project}", flush=True)
            new = Path(sources) / "built" / project
            build(project, Path(sources), new, "--sdist", "--wheel")
            keep_wheel(project, *new.glob("*.whl"))
            shutil.copytree(new, out, dirs_exist_ok=True)
        for project in ("runtime", "plugin_sdk"):
            build(project, Path(sources), out, "--wheel", pure=True)
    print("tagging the wheels for Linux, and checking all", flush=True)
    for wheel in out.glob(f"*-{ABI}-linux_*.whl"):
        tag_for_index(wheel)
    made = sorted([*out.glob("*.whl"), *out.glob("*.tar.gz")])
    if wrong := list(faults(made, stated)):
        raise SystemExit("\n".join(wrong))
    run_release_tool("twine", "check", "--strict", *made)
    print("installing them into an empty environment", flush=True)
    try_out(out)
    print(f"{len(made)} files in {out.relative_to(ROOT)}/ are fit to be released as {stated}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
