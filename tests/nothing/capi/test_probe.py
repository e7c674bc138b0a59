"""Probing unknown libraries in a child process: a crash or a hang is a result, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugrt.capi import probe_library
from support.clib import compile_c, needs_cc, tiny_library
from support.native_core import with_plain_crashes

pytestmark = needs_cc


def test_healthy_library(tmp_path: Path) -> None:
    result = probe_library(tiny_library(tmp_path, "", "", "-DDEVICES=2"))
    assert (result.state, result.reason) == ("ok", "")
    assert result.facts["platform"] == "tiny"
    assert [d["id"] for d in result.facts["devices"]] == [0, 1]
    assert result.facts["pjrt_api_version"] == "0.90"
    assert "Client_Compile" in result.facts["missing_functions"]


def test_without_starting_it(tmp_path: Path) -> None:
    path = tiny_library(tmp_path, "api.Client_Create=(void*)abort;")
    result = probe_library(path, start=False)
    assert result.state == "ok"
    assert "devices" not in result.facts


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("abort();", "SIGABRT in PJRT_Plugin_Initialize"),
        ("*(volatile int*)0 = 1;", "SIGSEGV in PJRT_Plugin_Initialize"),
        ("_exit(0);", "exit code 0 in PJRT_Plugin_Initialize"),
        ("exit(3);", "exit code 3 in PJRT_Plugin_Initialize"),
        ('fprintf(stderr, "my last word\\n"); abort();', "last output: my last word"),
    ],
)
def test_library_that_ends_the_process(
    tmp_path: Path, body: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in with_plain_crashes().items():
        monkeypatch.setenv(name, value)
    function = f"static PJRT_Error* f(struct PJRT_Plugin_Initialize_Args* a) {{ {body} return 0; }}"
    result = probe_library(tiny_library(tmp_path, "api.Plugin_Initialize=f;", function))
    assert result.state == "broken"
    assert message in result.reason
    assert result.facts["pjrt_api_version"] == "0.90"


def test_library_that_aborts_when_it_is_loaded(tmp_path: Path) -> None:
    source = "#include <stdlib.h>\n__attribute__((constructor)) void f(void) { abort(); }"
    result = probe_library(compile_c(tmp_path, source))
    assert result.state == "broken"
    assert "SIGABRT while it was loaded" in result.reason


def test_library_that_hangs(tmp_path: Path) -> None:
    function = "static PJRT_Error* f(struct PJRT_Client_Create_Args* a) { for (;;) pause(); }"
    path = tiny_library(tmp_path, "api.Client_Create=f;", function)
    for seconds in (2.0, 10.0, 50.0):  # on a busy machine the child may start late
        result = probe_library(path, timeout=seconds)
        if "PJRT_Client_Create" in result.reason:
            break
    assert result.state == "broken"
    assert f"did not return within {seconds:g} s in PJRT_Client_Create" in result.reason
    assert result.cure


def test_library_that_prints(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = 'printf("{\\"result\\": 1}\\n"); fflush(stdout); fprintf(stderr, "noise\\n");'
    function = f"static PJRT_Error* f(struct PJRT_Plugin_Initialize_Args* a) {{ {body} return 0; }}"
    assert probe_library(tiny_library(tmp_path, "api.Plugin_Initialize=f;", function)).state == "ok"
    assert capfd.readouterr() == ("", "")


def test_library_without_its_hardware(tmp_path: Path) -> None:
    function = "static PJRT_Error* f(struct PJRT_Client_Create_Args* a) "
    function += '{ return fail(5, "no chip"); }'
    result = probe_library(tiny_library(tmp_path, "api.Client_Create=f;", function))
    assert (result.state, result.reason) == ("unavailable", "NOT_FOUND: no chip")


def test_states_of_refused_libraries(tmp_path: Path) -> None:
    old = tiny_library(tmp_path, "api.pjrt_api_version.minor_version=5;")
    assert probe_library(old).state == "incompatible"
    null = compile_c(tmp_path, "void* GetPjrtApi(void) { return 0; }")
    assert probe_library(null).state == "broken"
    assert probe_library(tmp_path / "absent.so").state == "broken"


def test_environment_and_options_reach_the_child(tmp_path: Path) -> None:
    function = """
    static PJRT_Error* f(struct PJRT_Client_Create_Args* a) {
      if (a->num_options != 1 || a->create_options[0].int64_value != 7) return fail(3, "options");
      return getenv("PLUGRT_TEST_PROBE") ? client_create(a) : fail(9, "environment");
    }"""
    path = tiny_library(tmp_path, "api.Client_Create=f;", function)
    assert "options" in probe_library(path).reason
    assert "environment" in probe_library(path, options={"n": 7}).reason
    assert probe_library(path, options={"n": 7}, env={"PLUGRT_TEST_PROBE": "1"}).state == "ok"
