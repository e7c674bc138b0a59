"""Ctrl-C amid the first import of an extension module: the next call works."""

from __future__ import annotations

import pytest

from plugrt.native.native_core import core
from support.apart import runs_apart
from support.distributions import run_python

pytestmark = runs_apart("lifetimes")

PROGRAM = """
    import os, signal, sys, threading
    import plugrt

    amid, sent = sys.argv[1], []

    def send():
        sent.append(amid)
        os.kill(os.getpid(), signal.SIGINT)

    def hook(event, arguments):
        if event == "import" and arguments[0] == amid and not sent:
            send()

    file, _, calls = amid.partition(":")
    left = int(calls or 1)

    def profile(frame, event, argument):
        global left
        if event == "c_return" and frame.f_code.co_filename.endswith(file):
            left -= 1
            if not left:
                send()

    signal.signal(signal.SIGINT, signal.default_int_handler)
    if calls:
        from plugrt.lifetime import thread_work
        start = thread_work.start_new_thread
        run_all = lambda run: (sys.setprofile(profile), run())
        thread_work.start_new_thread = lambda run, _: start(run_all, (run,))
    else:
        sys.addaudithook(hook)

    def over_mesh():  # needs Shardy's dialect, which is imported when it is first used
        mesh, whole = plugrt.make_mesh((1,), ("i",)), plugrt.sharding.PartitionSpec()
        return plugrt.shard_map(lambda x: x + 1, mesh=mesh, in_specs=whole, out_specs=whole)

    interrupted, amidst = 0, []
    for _ in range(3):
        try:
            result = plugrt.jit(over_mesh())(1.0)
        except KeyboardInterrupt:
            interrupted += 1
            specs = [getattr(module, "__spec__", None) for module in [*sys.modules.values()]]
            amidst += [spec for spec in specs if getattr(spec, "_initializing", False)]
    print(sent == [amid], interrupted, float(result), len(amidst))
"""


@pytest.mark.parametrize(
    "amid",
    [
        "numpy._core.multiarray",
        "numpy._core.umath",
        "ml_dtypes._ml_dtypes_ext",
        "jaxlib.mlir._mlir_libs",
        "jaxlib.mlir.dialects._ods_common",
        "jaxlib.mlir.dialects._stablehlo_ops_gen",
        "jaxlib.mlir.dialects._func_ops_gen",
        "jaxlib.mlir.dialects._sdy_ops_gen",
        "jaxlib._jax",
        "optree._C",
        "jaxlib/mlir/dialects/_stablehlo_ops_gen.py:40",
        "jaxlib/mlir/dialects/_sdy_ops_gen.py:9",
        "numpy/_core/__init__.py:3",
    ],
)
def test_the_next_call_works(amid: str) -> None:
    ran = run_python(PROGRAM, arguments=(amid,))
    assert ran.stdout.split() == ["True", "1", "2.0", "0"], ran.stderr


LOADED = """
    import _imp, itertools, os, sys
    import plugrt

    def use():
        mesh, whole = plugrt.make_mesh((1,), ("i",)), plugrt.sharding.PartitionSpec()
        add = plugrt.shard_map(lambda x: x + 1, mesh=mesh, in_specs=whole, out_specs=whole)
        return float(plugrt.jit(add)(plugrt.device_put(1.0)))

    def interrupt(frame, event, function):
        global left, name
        if event == "c_return" and function in (_imp.create_dynamic, _imp.exec_dynamic):
            while "spec" not in frame.f_locals:
                frame = frame.f_back
            spec = frame.f_locals["spec"]
            left -= "lib-dynload" not in spec.origin
            if left < 0 and not name:
                name = spec.name
                raise KeyboardInterrupt

    names = []
    for place in itertools.count():
        read, write = os.pipe()
        if not (child := os.fork()):
            left, name, came = place, "", None
            sys.setprofile(interrupt)
            try:
                use()
            except KeyboardInterrupt:
                came = True
            sys.setprofile(None)
            os.write(write, name.encode())
            assert came or not name
            from plugrt.native import native_core
            assert use() == 2 and native_core.core, (name, native_core.reason)
            sys.exit()
        os.close(write)
        assert not os.waitpid(child, 0)[1]
        if not (name := os.read(read, 100).decode()):
            break
        names.append(name)
    print(len(names) < 20, sorted({*names}))
"""


@pytest.mark.skipif(core is None, reason="the compiled core is imported")
def test_an_interrupt_after_a_module_was_loaded() -> None:
    """The compiled core was refused from then on, and calls ran in Python."""
    ran = run_python(LOADED, JAX_PLATFORMS="cpu")
    assert ran.stdout == "True ['_cffi_backend', 'ml_dtypes._ml_dtypes_ext', 'optree._C']\n", ran
