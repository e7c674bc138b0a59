"""The runner in C has the verdicts of the kit on the checks that it exports."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugrt.capi.abi.generate import cdef
from support import kit
from support.clib import compile_c, needs_cc
from support.exported_checks import build_runner, export_checks, run_checks
from support.xla_cpu import library_path, needs_library

CHECKS = (
    "abi.slots", "abi.errors", "abi.attributes", "buffers.put_get.transposed",
    "buffers.put_get.dtypes.bfloat16", "buffers.delete", "operations.add.complex64",
    "operations.exponential.float16", "programs.refused.nonsense", "programs.refused.devices",
    "programs.refused.format", "programs.refused.arguments.dtype",
    "collectives.all_reduce.add.float32",
)  # fmt: skip
CODE = ("client.lookup.unknown", "buffers.put_get.byte_order")

DEFECTS = {
    "a wrong sign in what is read": (
        "Buffer_ToHostBuffer",
        # The library may write the bytes later: the defect waits for them.
        "PJRT_Error* e = real.Buffer_ToHostBuffer(a); if (e || !a->dst || !a->dst_size) return e;"
        "struct PJRT_Event_Await_Args ready = {sizeof ready, NULL, a->event};"
        "e = real.Event_Await(&ready); ((char*)a->dst)[a->dst_size - 1] ^= 128; return e;",
    ),
    "a crash of the compiler": ("Client_Compile", "return *(PJRT_Error* volatile*)8;"),
    "a launch that hangs": ("LoadedExecutable_Execute", "for (;;) pause();"),
    "a put that ends the process": ("Client_BufferFromHostBuffer", "_exit(0);"),
}
"""Defect to the function that the library replaces, and its new body; ``real`` is the table."""

_SHIM = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <dlfcn.h>
#include "pjrt.h"
static PJRT_Api real, api;
static PJRT_Error* defective(struct PJRT_%(name)s_Args* a) { %(body)s }
const PJRT_Api* GetPjrtApi(void) {
  void* library = dlopen("%(real)s", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const PJRT_Api* found = ((const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi"))();
  memcpy(&real, found, found->struct_size < sizeof real ? found->struct_size : sizeof real);
  api = real;
  api.%(name)s = defective;
  return &api;
}
"""


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checks")
    said = export_checks(folder, *[f"--check={name}" for name in (*CHECKS, *CODE)])
    assert all(f"{name} is no data: it" in said for name in CODE)
    assert f"13 of 15 checks are in {folder}: 10 as data, 3 of the function table" in said
    return build_runner(folder)


def _library() -> Path:
    path = library_path()
    assert path is not None
    return path


@needs_cc
@needs_library
def test_it_has_the_kit_s_verdicts(runner: Path) -> None:
    code, found = run_checks(runner, _library(), "--option", "cpu_device_count=4")
    options = {"cpu_device_count": 4}
    run = kit.run("library", str(_library()), CHECKS, options=options)
    assert found == {name: str(run.results[name].verdict) for name in CHECKS}
    assert found["operations.add.complex64"] == "PASS"
    assert found["programs.refused.arguments.dtype"] == "FAIL"  # see docs/findings.md
    assert code == 1
    assert run_checks(runner, _library(), "--check=abi.slots") == (0, {"abi.slots": "PASS"})


@needs_cc
@needs_library
@pytest.mark.parametrize(
    ("defect", "verdict", "check"),
    [
        ("a wrong sign in what is read", "FAIL", "buffers.put_get.transposed"),
        ("a crash of the compiler", "CRASH", "operations.add.complex64"),
        ("a launch that hangs", "TIMEOUT", "operations.add.complex64"),
        ("a put that ends the process", "CRASH", "buffers.delete"),
    ],
)
def test_a_defect_is_the_verdict_of_the_open_check(
    runner: Path, tmp_path: Path, defect: str, verdict: str, check: str
) -> None:
    (tmp_path / "pjrt.h").write_text(cdef())
    name, body = DEFECTS[defect]
    source = _SHIM % {"name": name, "body": body, "real": _library()}
    library = compile_c(tmp_path, source, f"-I{tmp_path}")
    selected = [f"--check={each}" for each in (check, "abi.slots")]
    code, found = run_checks(runner, library, *selected, "--time-limit=5")
    assert (code, found) == (1, {check: verdict, "abi.slots": "PASS"})
