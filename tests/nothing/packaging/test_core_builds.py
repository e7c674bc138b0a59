"""The parts in C of the runtime and of the SDK are compiled in the same way."""

from __future__ import annotations

import importlib
import re
import sysconfig
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

setuptools: Any = importlib.import_module("setuptools")  # which has no types
build_ext: Any = importlib.import_module("setuptools.command.build_ext").build_ext
run_setup: Any = importlib.import_module("distutils.core").run_setup
errors: Any = importlib.import_module("setuptools.errors")
ROOT = Path(__file__).parents[3]
PROJECTS = ("runtime", "plugin_sdk")


def _given_to_setup(project: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Returns the arguments that a project's ``setup.py`` passes to setuptools."""
    monkeypatch.chdir(ROOT / project)
    monkeypatch.syspath_prepend(ROOT / project)  # as setup.py does; undone after the test
    made = run_setup("setup.py", stop_after="init")
    names = ("ext_modules", "cmdclass")
    wheel = {key: value for key, (_, value) in made.get_option_dict("bdist_wheel").items()}
    return {**{name: getattr(made, name) for name in names}, "options": {"bdist_wheel": wheel}}


def _files(project: str, kind: str) -> list[str]:
    """Returns the paths, relative to the project, of the core's files of a kind."""
    folder = ROOT / project
    return [str(path.relative_to(folder)) for path in (folder / "core").rglob(f"*.{kind}")]


def _way(extension: Any) -> dict[str, Any]:
    """Returns the build settings of an extension, without those for the SDK's use of glibc."""
    needless = ("-D_GNU_SOURCE", "-include", "core/old_glibc.h")
    return {
        "flags": [flag for flag in extension.extra_compile_args if flag not in needless],
        "macros": extension.define_macros,
        "limited": extension.py_limited_api,
        "optional": extension.optional,
    }


def test_both_parts_in_c_are_compiled_in_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sdist has a ``setup.py`` of its own, since it must build alone."""
    monkeypatch.delenv("PLUGRT_BUILD_CORE", raising=False)
    runtime, sdk = (_given_to_setup(project, monkeypatch) for project in PROJECTS)
    ours, theirs = runtime["ext_modules"][0], sdk["ext_modules"][0]
    assert _way(ours) == _way(theirs)
    assert _way(ours)["macros"] == [("Py_LIMITED_API", "0x030B0000")]
    assert runtime["options"] == sdk["options"] == {"bdist_wheel": {"py_limited_api": "cp311"}}
    for project, given in zip(PROJECTS, (runtime, sdk), strict=True):
        extension, *_ = extensions = given["ext_modules"]
        others = [other.sources for other in extensions[1:]]
        found = {kind: _files(project, kind) for kind in ("c", "h", "cc")}
        assert sorted(extension.sources) == sorted(set(found["c"]) - {*chain(*others)})
        # setuptools does not compile headers and C++ here; subfolders belong to other extensions
        needed = [*found["h"], *found["cc"]]
        if others:
            needed = [name for name in needed if Path(name).parent == Path("core")]
        assert sorted(extension.depends) == sorted(needed)
        manifest = (ROOT / project / "MANIFEST.in").read_text(encoding="utf-8")
        assert "recursive-include core *.h *.c" in manifest
        assert not found["cc"] or "*.cc" in manifest


@pytest.mark.parametrize("why", ["PLUGRT_BUILD_CORE=no", "a Python without the GIL"])
def test_both_are_left_out_in_the_same_cases(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if why.startswith("PLUGRT"):
        monkeypatch.setenv("PLUGRT_BUILD_CORE", "no")
    else:
        monkeypatch.delenv("PLUGRT_BUILD_CORE", raising=False)
        monkeypatch.setattr(sysconfig, "get_config_var", lambda name: name == "Py_GIL_DISABLED")
    for project in PROJECTS:
        given = _given_to_setup(project, monkeypatch)
        assert (given["ext_modules"], given["options"]) == ([], {"bdist_wheel": {}})


def test_releases_are_built_on_linux_with_glibc_alone() -> None:
    """If wheels for other systems are added, docs/extending.md must state it."""
    for name in ("release", "ci"):
        text = (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8")
        runners = re.findall(r"runs-on: *(\S+)", text)
        assert {runner.partition("-")[0] for runner in runners} == {"ubuntu"}
        assert not re.search("container|cibuildwheel|musl|free-?thread", text)


def test_the_pythons_that_were_tried_are_named() -> None:
    named = set()
    for file in (*ROOT.glob("*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")):
        found = re.findall(r"Python :: (3\.\d+)", file.read_text(encoding="utf-8"))
        named.add(tuple(found))
    assert named == {("3.11", "3.12", "3.13")}
    page = " ".join((ROOT / "docs/extending.md").read_text(encoding="utf-8").split())
    assert "Python 3.11, 3.12 and 3.13 were tried" in page


class _Idle(build_ext):
    """Chooses the options and compiles nothing."""

    def build_extensions(self) -> None:
        pass


class _Compiler:
    """Refuses one flag in one build step."""

    def __init__(self, refusing: str) -> None:
        self.refusing = refusing

    def compile(self, sources: list[str], output_dir: str, extra_postargs: list[str]) -> list[str]:
        if sources == ["core/library/trampolines.cc"]:
            if self.refusing == "C++":
                raise errors.CompileError("no C++")
            return ["trampolines.o"]
        assert "trial" in Path(sources[0]).read_text(encoding="utf-8")
        if self.refusing == "compile":
            raise errors.CompileError(f"unknown: {extra_postargs}")
        return ["trial.o"]

    def link_shared_object(self, objects: list[str], to: str, extra_postargs: list[str]) -> None:
        if objects == ["trampolines.o"]:
            return
        assert objects == ["trial.o"]
        if self.refusing == "link":
            raise errors.LinkError(f"unknown: {extra_postargs}")


@pytest.mark.parametrize("refusing", ["nothing", "C++", "compile", "link"])
def test_files_are_optimised_together_where_a_trial_succeeds(
    refusing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part in C is optional: with a flag that the compiler refuses it would be omitted."""
    of_the_sdk = ["-flto-partition=one"]
    older = ["-Wl,--no-as-needed", "-l:libdl.so.2", "-l:libpthread.so.0"]
    for project, more, libraries in zip(PROJECTS, ([], of_the_sdk), ([], older), strict=True):
        ours = _given_to_setup(project, monkeypatch)["cmdclass"]["build_ext"]
        build: Any = type("Build", (ours, _Idle), {})(setuptools.Distribution())
        shared = ["-Wall"]
        build.extensions = [
            setuptools.Extension(name, [], extra_compile_args=shared) for name in "ab"
        ]
        build.compiler, build.build_temp = _Compiler(refusing), "build"
        build.build_extensions()
        found = [(e.extra_compile_args, e.extra_link_args) for e in build.extensions]
        assert shared == ["-Wall"]
        refuses_flags = refusing in ("compile", "link")
        added = [] if refuses_flags else ["-O3", "-flto=auto", *more]
        linked = [] if refuses_flags else [*added, *libraries]
        catches = project == "runtime" and refusing != "C++"
        cplusplus = ["-lstdc++"] if catches else []
        assert found == [(["-Wall", *added], [*linked, *cplusplus]), (["-Wall", *added], linked)]
        first = build.extensions[0]
        assert first.extra_objects == (["trampolines.o"] if catches else [])
        assert first.define_macros == ([("PLUGRT_CATCHES", "1")] if catches else [])


def test_both_build_by_one_file() -> None:
    """One is a link to the other; an sdist has a copy (tests/cpu/packaging/test_core_sdists.py)."""
    ours, theirs = (ROOT / project / "core_build.py" for project in PROJECTS)
    assert theirs.is_symlink()
    assert theirs.samefile(ours)
