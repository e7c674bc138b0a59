"""Errors for files that the dynamic loader cannot open."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.sections import SymbolTableSection

from plugrt.capi import load_library
from plugrt.capi.loading.elf import get_machine_name, is_for_this_machine, read_elf
from plugrt.capi.loading.load_errors import wrong_file
from plugrt.errors import PluginBroken, PluginError, PluginIncompatible
from support.clib import compile_c, needs_cc
from support.watched_calls import at_calls


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (b"", PluginBroken, "is empty"),
        (b"hello, I am text", PluginBroken, "not a shared library"),
        (b"\x7fELF\x02\x01\x01", PluginBroken, "cut short"),
        (b"\x7fELF" + b"\xff" * 200, PluginBroken, "cut short"),
        (b"MZ\x90\x00", PluginIncompatible, "a Windows library"),
        (b"\xcf\xfa\xed\xfe....", PluginIncompatible, "a macOS library"),
        (b"#!/bin/sh\n", PluginIncompatible, "a script"),
        (b"PK\x03\x04", PluginIncompatible, "wheel that was not installed"),
        (b"version https://git-lfs.github.com/spec/v1", PluginIncompatible, "Git LFS"),
    ],
)
def test_not_a_library(
    tmp_path: Path, content: bytes, kind: type[PluginError], message: str
) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    with pytest.raises(kind, match=message):
        load_library(path)


def test_absent_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(PluginBroken, match="does not exist"):
        load_library(tmp_path / "absent.so")
    with pytest.raises(PluginBroken, match="is a folder, not a regular file"):
        load_library(tmp_path)


@needs_cc
def test_other_machine(tmp_path: Path) -> None:
    path = compile_c(tmp_path, "int x;")
    content = bytearray(path.read_bytes())
    content[18:20] = b"\xf3\x00"  # e_machine = EM_RISCV
    path.write_bytes(content)
    message = f"built for riscv; this machine is {platform.machine()}"
    with pytest.raises(PluginIncompatible, match=message):
        load_library(path)


@needs_cc
def test_cut_short(tmp_path: Path) -> None:
    path = compile_c(tmp_path, "int x;")
    whole = path.read_bytes()
    # Without the check before, the loader's bus error would end this process.
    for size in (40, 64, 200, 3000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(PluginBroken, match="cut short"):
            load_library(path)


@needs_cc
def test_missing_libraries_are_named_with_their_packages(tmp_path: Path) -> None:
    deep = compile_c(tmp_path, "int deep(void) { return 1; }", "-Wl,-soname,libdeep.so.3")
    os.rename(deep, tmp_path / "libdeep.so.3")
    middle = compile_c(
        tmp_path, "int deep(void); int middle(void) { return deep(); }",
        "-Wl,-soname,libmiddle.so.1", f"-L{tmp_path}", "-l:libdeep.so.3",
    )  # fmt: skip
    os.rename(middle, tmp_path / "libmiddle.so.1")
    top = compile_c(
        tmp_path, "int middle(void); void* GetPjrtApi(void) { return (void*)(long)middle(); }",
        f"-L{tmp_path}", "-l:libmiddle.so.1", "-Wl,-rpath,$ORIGIN",
        "-Wl,--unresolved-symbols=ignore-all",
    )  # fmt: skip
    os.remove(tmp_path / "libdeep.so.3")
    with pytest.raises(PluginBroken) as caught:
        load_library(top, hints={"libdeep.so*": "the package deep-wheel"})
    message = str(caught.value)
    assert "needs a shared library that this system does not have" in message
    assert "libdeep.so.3 (needed by" in message
    assert "which the package deep-wheel brings. Install what brings them, or name" in message

    os.remove(tmp_path / "libmiddle.so.1")
    with pytest.raises(PluginBroken, match=r"libmiddle.so.1, which the package m brings"):
        load_library(top, hints={"libmiddle.so.1": "the package m"})


@needs_cc
def test_undefined_symbol(tmp_path: Path) -> None:
    path = compile_c(tmp_path, "int gone(void); void* GetPjrtApi(void) { gone(); return 0; }")
    with pytest.raises(PluginBroken, match=r"undefined symbol: gone.*another version"):
        load_library(path)


@needs_cc
def test_facts_of_a_library(tmp_path: Path) -> None:
    facts = read_elf(str(compile_c(tmp_path, "void* GetPjrtApi(void) { return 0; }")))
    assert facts.machine == get_machine_name()
    assert (facts.bits, facts.shared, facts.exports_api) == (64, True, True)
    assert not read_elf(str(compile_c(tmp_path, "int x;"))).exports_api


@needs_cc
def test_the_header_alone_tells_the_machine(tmp_path: Path) -> None:
    path = compile_c(tmp_path, "void* GetPjrtApi(void) { return 0; }")
    whole = path.read_bytes()
    assert is_for_this_machine(str(path))
    for at in (0, 3, 4, 5, 18, 19):
        for value in {0, 1, 2, 3, 40, 183} - {whole[at]}:
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            assert not is_for_this_machine(str(path)), (at, value)
            assert wrong_file(str(path)), (at, value)
    for size in range(20):
        path.write_bytes(whole[:size])
        assert not is_for_this_machine(str(path))
    os.remove(path)
    assert not is_for_this_machine(str(path))
    os.mkfifo(path)
    assert not is_for_this_machine(str(path))


@needs_cc
@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_a_symbol_is_looked_up_by_the_file_s_own_hash_table(tmp_path: Path, style: str) -> None:
    """Earlier, all symbols were read to find one: 24 s of a real library's start."""
    flags = (f"-Wl,--hash-style={style}",)
    ours = compile_c(tmp_path, "void* GetPjrtApi(void) { return 0; }", *flags)
    other = compile_c(tmp_path, "int x;", *flags)
    calls = "void* GetPjrtApi(void); void* f(void) { return GetPjrtApi(); }"
    needs = compile_c(tmp_path, calls, *flags, "-Wl,--unresolved-symbols=ignore-all")

    read: list[object] = []
    reading = (SymbolTableSection.get_symbol_by_name, SymbolTableSection.iter_symbols)
    with at_calls(reading, lambda *_: read.append(1)):
        found = [read_elf(str(path)).exports_api for path in (ours, other, needs)]
    assert found == [True, False, False]
    assert not read, "all symbols are read"


def test_using_the_room_costs_nothing_before_it_is_used() -> None:
    code = "import sys, plugrt.capi; print('cffi' in sys.modules, '_cffi_backend' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
