"""Imports by another thread after an interrupted import in the main thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.distributions import run_python

KEEP_THE_LOCK = """
import _imp, sys
from plugrt.lifetime.uninterrupted_imports import import_native

assert "sqlite3" not in sys.modules
for _ in range(2):  # as an interrupt after the first line of `_get_module_lock` does
    _imp.acquire_lock()
[module] = import_native("sqlite3")
print(module.__name__, _imp.lock_held())
"""

SWEEP = """
import _imp, faulthandler, sys
from importlib import import_module

from plugrt.lifetime.uninterrupted_imports import import_native
from support.interruption import EntryInterruption

sys.path.insert(0, sys.argv[1])
sys.unraisablehook = lambda _: None  # an interrupt amid a callback of importlib
faulthandler.dump_traceback_later(60, exit=True)
place, held = 0, 0
def forget():
    for name in ("inner", "inner.module"):
        sys.modules.pop(name, None)
while True:
    kept = None
    interruption = EntryInterruption(place)
    sys.setprofile(interruption)
    try:
        import_module("inner.module")
    except BaseException as error:
        kept = error  # its traceback keeps the lock of the module
    sys.setprofile(None)
    if interruption.place is None:
        break
    held += _imp.lock_held()
    forget()
    [module] = import_native("inner.module")
    assert module.VALUE == 1, interruption.place
    forget()
    place += 1
print(place > 100, held > 0)
"""

WITHIN = """
import _imp, sys
from importlib import _bootstrap, import_module

from plugrt.lifetime.thread_work import release_import_locks

sys.path.insert(0, sys.argv[1])
class Finder:
    def find_spec(self, name, *_):
        release_import_locks()
        seen.append((name, _imp.lock_held(), bool(_bootstrap._module_locks[name]().count)))
seen = []
sys.meta_path.insert(0, Finder())
module = import_module("inner.module")
print(module.VALUE, seen, _imp.lock_held(), [*_bootstrap._module_locks])
"""

AFTER = """
import sys
from plugrt.lifetime.uninterrupted_imports import ImportAfter

sys.meta_path = [i for i in sys.meta_path if not isinstance(i, ImportAfter)]  # that of einops
sys.path.insert(0, sys.argv[1])
ImportAfter("inner.module", "inner.follower")
ImportAfter("inner.module", "inner.missing")
import inner
print("inner.follower" in sys.modules)
import inner.module
print("inner.follower" in sys.modules, inner.module.VALUE, inner.follower.VALUE)
ImportAfter("inner.module", "inner.later")
print("inner.later" in sys.modules, [i for i in sys.meta_path if isinstance(i, ImportAfter)])
"""


def test_an_import_lock_that_an_interrupt_kept_is_released() -> None:
    """Earlier, another thread waited for the lock for ever, and the main thread for that thread."""
    done = run_python(KEEP_THE_LOCK, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "sqlite3 False\n", "")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/__init__.py").write_text("")
    (tmp_path / "inner/module.py").write_text("VALUE = 1\n")
    (tmp_path / "inner/follower.py").write_text("from inner.module import VALUE\n")
    (tmp_path / "inner/later.py").write_text("")
    return str(tmp_path)


def test_an_interrupted_import_keeps_no_other_thread_from_importing(folder: str) -> None:
    """Earlier, the main thread kept the import lock and waited for the importing thread."""
    done = run_python(SWEEP, arguments=(folder,), timeout=120)
    # The second True: CPython leaves locks held. If it is False, remove release_import_locks.
    assert done.stdout == "True True\n", done.stdout + done.stderr


def test_locks_of_imports_under_way_stay_held(folder: str) -> None:
    done = run_python(WITHIN, arguments=(folder,), timeout=120)
    seen = [("inner", True, True), ("inner.module", True, True)]
    assert done.stdout == f"1 {seen} False []\n", done.stdout + done.stderr


def test_a_module_is_imported_after_another_ones_import(folder: str) -> None:
    done = run_python(AFTER, arguments=(folder,), timeout=120)
    assert done.stdout == "False\nTrue 1 1\nTrue []\n", done.stdout + done.stderr
