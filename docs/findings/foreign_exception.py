"""Asks libstdc++ for the type of an exception of another runtime: the memory before it, 0x4141…."""

import subprocess
import tempfile
from pathlib import Path

SOURCE = r"""
#include <cstdio>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <unwind.h>
struct alignas(16) Thrown { char before[128]; _Unwind_Exception part; };
static Thrown thrown;
static void forget(_Unwind_Reason_Code, _Unwind_Exception *) {}
int main() {
  memset(thrown.before, 0x41, sizeof thrown.before);
  memcpy(&thrown.part.exception_class, "\0++CGNLC", 8);
  thrown.part.exception_cleanup = forget;
  try {
    _Unwind_RaiseException(&thrown.part);
  } catch (...) {
    const void *type = abi::__cxa_current_exception_type();
    printf("type %p, %s\n", type, std::current_exception() ? "known" : "foreign");
  }
}
"""
with tempfile.TemporaryDirectory() as folder:
    source, program = Path(folder, "foreign.cc"), Path(folder, "foreign")
    source.write_text(SOURCE)
    subprocess.run(["c++", "-std=c++11", "-o", program, source], check=True)
    subprocess.run([program], check=True)
