"""``plugrt export``: a shared library that finds the Python of the process that loads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from plugrt.errors import InvalidArgument, UnknownPlatform
from plugrt_sdk.commands import export
from plugrt_sdk.export import export_library
from plugrt_sdk.export.library import LONGEST_NAME, MARKER
from support.clib import needs_cc
from support.fake_client import FakePlugin
from support.registries import as_own, registry

CORE = Path(__file__).parents[3] / "plugin_sdk/core"
HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
#include "pjrt.h"
typedef const PJRT_Api* (*Get)(void);
int main(int count, char** words) {
  void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) { puts(dlerror()); return 2; }
  const PJRT_Api* api = ((Get)dlsym(library, "GetPjrtApi"))();
  if (api == NULL) { puts("NULL"); return 3; }
  struct PJRT_Plugin_Attributes_Args attributes = {sizeof attributes};
  if (api->Plugin_Attributes(&attributes) != NULL) return 4;
  struct PJRT_Plugin_Initialize_Args initialize = {sizeof initialize};
  struct PJRT_Client_Create_Args create = {sizeof create};
  PJRT_Error* errors[] = {api->Plugin_Initialize(&initialize), api->Client_Create(&create)};
  for (int i = 0; i < 2; i++) {
    struct PJRT_Error_Message_Args message = {sizeof message, NULL, errors[i]};
    struct PJRT_Error_GetCode_Args code = {sizeof code, NULL, errors[i]};
    struct PJRT_Error_Destroy_Args destroy = {sizeof destroy, NULL, errors[i]};
    api->Error_Message(&message);
    api->Error_GetCode(&code);
    printf("%d %.*s\n", code.code, (int)message.message_size, message.message);
    api->Error_Destroy(&destroy);
  }
  /* Every function behind those that errors are asked with. */
  size_t refused = 0, slots = 0;
  for (size_t at = offsetof(PJRT_Api, Plugin_Initialize); at < api->struct_size; at += 8) {
    void* slot = *(void**)((char*)api + at);
    size_t arguments[512] = {sizeof arguments};
    if (slot == (void*)api->Error_ForEachPayload) continue;
    PJRT_Error* error = ((PJRT_Error* (*)(void*))slot)(arguments);
    struct PJRT_Error_Destroy_Args destroy = {sizeof destroy, NULL, error};
    api->Error_Destroy(&destroy);
    slots++;
    refused += error != NULL;
  }
  printf("%zu of %zu\n", refused, slots);
  return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_library("cpu", tmp_path_factory.mktemp("library") / "libpjrt_cpu.so")


def test_the_library_has_the_name_and_its_marker_once(library: Path) -> None:
    content = library.read_bytes()
    assert content.count(MARKER) == 1
    assert MARKER + b"cpu\0" in content
    assert os.access(library, os.X_OK)


def test_the_command_writes_the_library(tmp_path: Path, library: Path) -> None:
    target = tmp_path / "a.so"
    found = CliRunner().invoke(export, ["cpu", "-o", str(target)])
    assert (found.exit_code, found.output.split()) == (0, [str(target)])
    assert target.read_bytes() == library.read_bytes()


def test_only_installed_plugins_are_exported(tmp_path: Path) -> None:
    with pytest.raises(UnknownPlatform, match=r"no installed plugin 'nosuch'; found: .*\bcpu\b"):
        export_library("nosuch", tmp_path / "a.so")


def test_an_older_version_is_reported(tmp_path: Path) -> None:
    path = export_library("cpu", tmp_path / "a.so", minor=54)
    ask = (
        f"import ctypes; library = ctypes.PyDLL({str(path)!r}); "
        "library.GetPjrtApi.restype = ctypes.c_void_p; "
        "print(ctypes.c_int.from_address(library.GetPjrtApi() + 36).value)"  # minor_version
    )
    command = [sys.executable, "-c", ask]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "54\n"), done.stderr
    for wrong in (28, 9999):
        with pytest.raises(InvalidArgument, match=rf"0\.{wrong} of the PJRT C API is not declared"):
            export_library("cpu", tmp_path / "b.so", minor=wrong)


def test_a_name_has_room_for_95_bytes(tmp_path: Path) -> None:
    name = "n" * LONGEST_NAME
    with as_own(registry(FakePlugin(name), FakePlugin(name + "n"))):
        content = export_library(name, tmp_path / "a.so").read_bytes()
        assert MARKER + name.encode() + b"\0" in content
        with pytest.raises(InvalidArgument, match="more than 95 bytes"):
            export_library(name + "n", tmp_path / "b.so")


@needs_cc
def test_a_host_without_python_gets_an_error_with_words(tmp_path: Path, library: Path) -> None:
    (tmp_path / "host.c").write_text(HOST)
    build = ["cc", "-I", CORE, "-o", tmp_path / "host", tmp_path / "host.c", "-ldl"]
    subprocess.run(build, check=True)
    done = subprocess.run([tmp_path / "host", library], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    said = "the plugin 'cpu' (plugrt export): it is written in Python, and this process has no"
    *words, refused = done.stdout.splitlines()
    assert all(line.startswith("9 ") and said in line for line in words)
    assert len(words) == 2
    assert refused == "133 of 134"  # all but the plugin's attributes, which it does not have
    assert said in done.stderr


def test_a_python_without_the_sdk_is_told_what_to_install(library: Path) -> None:
    ask = f"import ctypes; print(ctypes.PyDLL({str(library)!r}).GetPjrtApi() != 0)"
    command = [sys.executable, "-I", "-S", "-c", ask]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n")
    version = sys.version.split()[0]
    assert f"Python {version} in this process cannot provide it: ModuleNotFoundErr" in done.stderr
    assert "Install plugrt-sdk" in done.stderr


def test_a_library_is_replaced_and_not_written_over(tmp_path: Path) -> None:
    """Otherwise a process that has loaded the old one would crash, and read parts of both."""
    target = export_library("cpu", tmp_path / "lib.so")
    with target.open("rb") as loaded:
        before = loaded.read()
        export_library("numpy", target)
        loaded.seek(0)
        assert loaded.read() == before
    assert MARKER + b"numpy\0" in target.read_bytes()
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(OSError, match="nowhere"):
        export_library("cpu", tmp_path / "nowhere/lib.so")
