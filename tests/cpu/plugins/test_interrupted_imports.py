"""Ctrl-C during the first import of an extension module: the next call works."""

from __future__ import annotations

import pytest

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
    import _imp, sys
    import plugrt

    def note(frame, event, function):
        if event == "c_return" and function in (_imp.create_dynamic, _imp.exec_dynamic):
            while "spec" not in frame.f_locals:
                frame = frame.f_back
            if "lib-dynload" not in frame.f_locals["spec"].origin:  # Python's own can be repeated
                names.append(frame.f_locals["spec"].name)

    names = []
    sys.setprofile(note)
    mesh, whole = plugrt.make_mesh((1,), ("i",)), plugrt.sharding.PartitionSpec()
    add = plugrt.shard_map(lambda x: x + 1, mesh=mesh, in_specs=whole, out_specs=whole)
    found = plugrt.jit(add)(plugrt.device_put(1.0))
    sys.setprofile(None)
    print(float(found), names, "optree._C" in sys.modules)
"""


def test_the_main_thread_loads_no_extension_module() -> None:
    """Earlier, an interrupt of such an import raised ImportError, or the core was refused later."""
    ran = run_python(LOADED, JAX_PLATFORMS="cpu")
    assert (ran.stdout, ran.stderr) == ("2.0 [] True\n", "")
