"""Finalisers that run when the interpreter ends, after the clients of libraries are destroyed."""

from __future__ import annotations

import pytest

from support.apart import runs_apart
from support.distributions import run_python
from support.xla_cpu import library_path

pytestmark = runs_apart("lifetimes")

PROGRAM = """
    import builtins, os, sys
    import numpy as np
    import plugrt

    USE = {
        "read": lambda: np.asarray(b),
        "launch": lambda: f(a),
        "donate": lambda: g(a),
        "put": lambda: plugrt.device_put(host),
        "wait": lambda: b.block_until_ready(),
        "dlpack": lambda: np.from_dlpack(b),
        "memories": lambda: client.memories(),
        "cost": lambda: compiled.cost_analysis(),
        "delete": lambda: b.delete(),
        "clear": lambda: plugrt.clear_backends(),
    }
    host = np.arange(3, dtype=np.float32)
    f = plugrt.jit(lambda x: x * 2)
    g = plugrt.jit(lambda x: x - 1, donate_argnums=0)
    a = plugrt.device_put(host)
    b = f(a)
    g(plugrt.device_put(host))
    compiled = f.lower(a).compile()
    client = plugrt.get_backend()

    class Late:
        def __del__(self, write=os.write, used=[USE[name] for name in sys.argv[1:]]):
            for use in used:
                try:
                    use()
                except Exception as error:
                    write(1, type(error).__name__.encode() + b" ")
                else:
                    write(1, b"done ")

    builtins.held = Late()  # the interpreter frees it last
"""
LIBRARY = {"JAX_PLATFORMS": "lib", "PLUGRT_PROBE_LIBRARIES": "0"}


def environ() -> dict[str, str]:
    return {**LIBRARY, "PJRT_NAMES_AND_LIBRARY_PATHS": f"lib:{library_path()}"}


def test_use_is_refused_and_what_frees_is_quiet() -> None:
    refused = ("read", "launch", "donate", "put", "wait", "dlpack", "memories", "cost")
    ran = run_python(PROGRAM, arguments=(*refused, "delete", "clear"), **environ())
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.split()[:-1] == ["FailedPrecondition"] * len(refused) + ["done"]


def test_exit_handlers_of_programs_run_before() -> None:
    ran = run_python(
        """
        import atexit
        import plugrt
        atexit.register(lambda: print(f(a)))
        f = plugrt.jit(lambda x: x + 1)
        a = f(f(1.0))  # optree is of no use any more in a handler registered before its own
        """,
        **environ(),
    )
    assert (ran.returncode, ran.stdout) == (0, "4.0\n"), ran.stderr


LEDGER = """
    import atexit, os, threading
    atexit.register(lambda: print(ledger.open_handles()))
    import numpy as np
    import plugrt
    from plugrt.capi.extensions import ffi
    from plugrt.capi.loading.handle_ledger import Ledger
    from plugrt.capi import load_library

    library = load_library(os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"].removeprefix("lib:"))
    ledger = Ledger(library)
    f = plugrt.jit(lambda x: x * 2)
    a = plugrt.device_put(np.arange(300, dtype=np.float32))  # read as a view
    large = plugrt.device_put(np.zeros(1 << 16, np.float32))
    b, deleted = f(a), f(large)
    str(b), deleted.delete()
    compiled = f.lower(a).compile()
    stay = plugrt.get_backend().buffer_from_host(np.ones(3), plugrt.devices()[0])
    event = stay.ready_event()
    inside = threading.Event()
    library.slots["Buffer_OnDeviceSizeInBytes"] = (
        lambda _: (inside.set(), threading.Event().wait()))

    class Cycle: pass
    cycle = Cycle()
    cycle.all = cycle, f(b), event
"""


@pytest.mark.parametrize(
    ("held", "left"),
    [
        ("", "{}"),
        ("view = np.asarray(b)", "{'Buffer': 1}"),
        ("capsule = plugrt.get_backend().buffer_from_host("
         "np.ones(3), plugrt.devices()[0]).to_dlpack()", "{'Buffer': 1}"),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", "{}"),
        ("threading.Thread(target=stay.on_device_size_in_bytes, daemon=True).start();"
         "inside.wait()", "'Client': 1"),
        ("ffi.register_handler(library, 'mine', print, 'Host')", "'Executable': 2"),
    ],
    ids=["nothing else", "a view", "a capsule", "a thread", "a call", "a handler"],
)  # fmt: skip
def test_unused_objects_are_destroyed_at_exit(held: str, left: str) -> None:
    ran = run_python(LEDGER + "    " + held, **environ())
    assert (ran.returncode, ran.stderr) == (0, "")
    assert left in ran.stdout, ran.stdout


def test_threads_that_still_launch_and_read() -> None:
    ran = run_python(
        """
        import threading
        import numpy as np
        import plugrt
        f = plugrt.jit(lambda x: x * 2)
        a = f(np.ones(1 << 10, np.float32))
        begun = threading.Semaphore(0)
        def work():
            read = np.asarray
            try:
                while True:
                    read(f(a)), plugrt.device_put(np.ones(3))
                    begun.release()
            except plugrt.errors.FailedPrecondition:
                pass
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        for _ in range(100):
            begun.acquire()
        """,
        **environ(),
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_daemon_threads_print_nothing() -> None:
    """Earlier, each printed the traceback of a FailedPrecondition."""
    ran = run_python(
        """
        import threading
        import numpy as np
        import plugrt
        f = plugrt.jit(lambda x: x * 2)
        a = f(np.ones(1 << 10, np.float32))
        uses = {
            lambda: np.asarray(f(a)),
            lambda: f(np.ones(1 << 10, np.float32)),
            lambda: plugrt.device_put(np.ones(3)),
            lambda: a + a,
            lambda: plugrt.jit(lambda x: x * 3)(a),
        }
        begun = {use: threading.Semaphore(0) for use in uses}
        def work(use):
            while True:
                use()
                begun[use].release()
        for use in [*uses] * 4:
            threading.Thread(target=work, args=(use,), daemon=True).start()
        for use in [*uses] * 8:
            begun[use].acquire()
        """,
        **environ(),
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_daemon_threads_end_before_optree_forgets_containers() -> None:
    """A thread leaves optree first; its next use of optree ends it."""
    ran = run_python(
        """
        import threading, time, types
        from plugrt.execution.trees import pytrees
        class Pair: pass
        def flatten(pair):
            inside.set()
            while isinstance(pytrees.optree, types.ModuleType):
                time.sleep(0.001)  # until the main thread keeps other threads from optree
            time.sleep(0.2)
            left.append(pair)
            return (1, 2), None
        pytrees.register_node(Pair, flatten, lambda _, parts: Pair())
        inside, left = threading.Event(), []
        def work():
            pytrees.flatten(Pair())
            pytrees.flatten((1, 2)), print("went on")
        thread = threading.Thread(target=work, daemon=True)
        thread.start(), inside.wait()
        pytrees._foresee_the_end()  # as atexit calls it
        print(len(left), pytrees.leaves((1, 2)))
        thread.join()
        """,
    )
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", "1 [1, 2]\n")


def test_an_exit_amid_the_first_import_in_a_daemon_thread_prints_nothing() -> None:
    ran = run_python(
        """
        import sys, threading, types
        import plugrt
        sys.modules["plugrt.capi.client.interpreter_exit"] = types.ModuleType("begun")
        """,
        **environ(),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
