"""`try_initialize`: runs the code of a plugin made for JAX in a child process, and watches it.

Where it does nothing but register one library, with a name and options of strings and numbers, the
program needs that registration only, and runs neither the code nor jax.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import os
import sys
import sysconfig
import threading
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from plugrt.capi.loading.elf import list_loaded
from plugrt.errors import PluginError, describe, read_message
from plugrt.plugins.library import ALONE
from plugrt.plugins.log import logger
from plugrt.plugins.record import Record
from plugrt.plugins.starting import probe_cache
from plugrt.plugins.starting.jax_recorder import BRIDGE, Registration, run_initialize
from plugrt.plugins.starting.plugin_inputs import Inputs, are_unchanged, describe_jax
from plugrt.processes.run_in_child import run_in_child
from plugrt.settings.declarations import Config
from plugrt.settings.option_types import CREATE_OPTIONS

_IMPORT_SECONDS = 60.0
"""The limit of importing jax, which is no work of the plugin's."""


@dataclass(frozen=True)
class Trial:
    """``registration`` is all that the code does; None where it must run in the program.

    ``ended`` says how it ended its process, ``failed`` what it raised before it registered
    anything.
    """

    registration: Registration | None = None
    ended: str = ""
    failed: str = ""


def try_initialize(record: Record, config: Config) -> Trial:
    """Runs ``initialize()`` of a record's module in a child, and returns the outcome.

    Code that calls other functions of jax's that register something is not tried: the program
    needs what it registers. Nor is it where a child lacks something that its options may depend on:
    settings of a jax that the program has imported, variables that name a coordinator.

    The outcome is remembered while the package's files, jax, and whatever else the code read are
    the same; a failure is not.
    """
    differs = _has_jax() or not ALONE.keys().isdisjoint(os.environ)
    if not config.probe_libraries or differs or record.description.registers_more:
        return Trial()
    facts = [record.module, record.description.identify(), describe_jax()]
    known = probe_cache.recall(facts)
    if known and (known["reasons"] or are_unchanged(known["inputs"])):
        return _use(record, known)
    request = {"module": record.module, "path": sys.path, "seconds": config.probe_seconds}
    whole = _IMPORT_SECONDS + config.probe_seconds
    outcome = run_in_child("plugrt.plugins.starting.jax_trial:examine", request, whole, env=ALONE)
    said = {name: value for line in outcome.lines for name, value in line.items()}
    if "began" not in said or outcome.how == "lost":
        return Trial()  # jax cannot be imported, or not in time
    if not outcome.succeeded or "done" not in said:
        # `whole` is mostly the time for importing jax, so the message states the other part.
        outcome = replace(outcome, seconds=config.probe_seconds)
        last = outcome.last_output()
        ended = f"the process {outcome.ending} in its initialize()"
        return Trial(ended=f"{ended}; its last output: {last}" if last else ended)
    if said["failed"]:
        return Trial(failed=said["failed"])
    if said["reasons"] or said["inputs"]:
        probe_cache.record(facts, said)
    return _use(record, said)


def _use(record: Record, said: dict[str, Any]) -> Trial:
    """Returns the trial from the reports of a child, which ran now or before."""
    if said["reasons"]:
        logger.info("%s: initialize() runs in the program: %s", record, "; ".join(said["reasons"]))
        return Trial()
    registration = Registration(**said["registration"])
    path = str(registration.library_path)
    # A file that the child made for itself is gone.
    return Trial(registration if os.sep not in path or os.path.exists(path) else None)


def _has_jax() -> bool:
    return "jax" in sys.modules


def examine(request: dict[str, Any], say: Any) -> None:
    """Reports what the module registers, and reasons to run it in the program as well."""
    sys.path[:] = request["path"]
    say(within=_IMPORT_SECONDS)
    importlib.import_module(BRIDGE)  # with all of jax, whose own calls are no work of the plugin
    say(within=request["seconds"], began=True)
    watch = _Watch()
    with watch:
        found, error = run_initialize(request["module"], opens=False)
    failed = ""
    if error is not None and not found:
        failed = read_message(error) if isinstance(error, PluginError) else describe(error)
    elif error is not None:
        watch.reasons.append(f"it raises {describe(error)} after it has registered a plugin")
    fault = _find_fault(found)
    reasons = [*watch.reasons, *([fault] if fault else [])]
    registration = None if reasons or failed else _plain(found[0])
    say(
        failed=failed, reasons=reasons, registration=registration, inputs=watch.inputs.noted(),
        done=True,
    )  # fmt: skip


def _find_fault(found: list[Registration]) -> str:
    """Returns why the registrations are of no use in another process; empty if they are."""
    if len(found) != 1:
        return f"it registers {len(found)} plugins"
    one = found[0]
    if one.c_api is not None or one.factory is not None or one.make_topology is not None:
        return "it registers objects of its process"
    if not isinstance(one.name, str) or type(one.priority) is not int or one.unknown:
        return "it registers with arguments of an unknown kind"
    if not isinstance(one.library_path, str | os.PathLike):
        return "it registers no path of a library"
    try:
        CREATE_OPTIONS.check({} if one.options is None else one.options)
    except ValueError as error:
        return f"its options are not strings and numbers: {error}"
    return ""


def _plain(one: Registration) -> dict[str, object]:
    path = os.fspath(one.library_path)
    return {"name": one.name, "priority": one.priority, "library_path": path,
            "options": one.options}  # fmt: skip


class _Watch:
    """Records other effects of the code that a program would miss; a context manager.

    Does not detect changes of dictionaries and lists in other modules.
    """

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.inputs = Inputs()
        self._settings = _jax_settings()
        self._functions = _functions()
        self._variables = _environment()
        self._libraries = set(list_loaded().values())
        if not self._libraries:
            self.reasons.append("which libraries it opens cannot be seen here")

    def __enter__(self) -> None:
        self.inputs.__enter__()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        self.inputs.__exit__()
        if changed := _environment() ^ self._variables:
            names = {variable.partition(b"=")[0].decode(errors="replace") for variable in changed}
            self.reasons.append(f"it changes the environment: {', '.join(sorted(names))}")
        python = os.path.join(sysconfig.get_path("platstdlib"), "")
        opened = set(list_loaded().values()) - self._libraries
        if opened := {path for path in opened if not path.startswith(python)}:
            self.reasons.append(f"it opens {', '.join(sorted(opened))}")
        settings = _jax_settings()
        if set_by_it := [name for name, was in self._settings.items() if settings[name] != was]:
            self.reasons.append(f"it sets {', '.join(sorted(set_by_it))} of jax")
        functions = _functions()
        if replaced := [
            ".".join(filter(None, (*at, name)))
            for at, names in self._functions.items()
            for name, was in names.items()
            if functions.get(at, {}).get(name) is not was and _is_function(was)
        ]:
            self.reasons.append(f"it replaces {', '.join(sorted(replaced))}")

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        """Notes calls of registering functions of jax and jaxlib, except those by jax itself."""
        caller: FrameType | None = frame
        if event == "call":
            self.inputs.note_call(frame)
            name, module = frame.f_code.co_name, frame.f_globals.get("__name__")
            caller = frame.f_back
        elif event == "c_call":
            name, module = argument.__name__, argument.__module__
        else:
            return
        by = caller.f_globals.get("__name__") if caller else None
        if name.lstrip("_").startswith("register") and _is_jax(module) and not _is_jax(by):
            self.reasons.append(f"it calls {name} of {module}")


def _is_jax(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in ("jax", "jaxlib")


def _jax_settings() -> dict[str, object]:
    """Returns the values of jax's configuration."""
    config = getattr(sys.modules["jax"], "config", None)
    return dict(getattr(config, "values", {}))


def _functions() -> dict[tuple[str, str], dict[str, object]]:
    """Returns copies of the dictionaries of loaded modules, and of classes that they define.

    The keys are module and class, "" for the module itself. Only values that have changed are
    examined later: there are some 100,000.
    """
    found: dict[tuple[str, str], dict[str, object]] = {}
    for module, loaded in list(sys.modules.items()):
        names = found[module, ""] = dict(getattr(loaded, "__dict__", {}))
        for name, value in names.items():
            # `isinstance` reads the class, and so uses a proxy of lazy_importer.
            if issubclass(type(value), type) and value.__module__ == module:
                found[module, name] = dict(vars(value))
    return found


def _is_function(value: object) -> bool:
    """Whether a value is callable, and no proxy that its first use replaces.

    importlib_metadata has proxies of lazy_importer.
    """
    if str(type(value).__module__).startswith("lazy_importer"):
        return False
    return callable(value) or isinstance(value, classmethod | property)


def _environment() -> set[bytes]:
    """Returns the variables, also those that a library set without Python."""
    variables = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    places = map(variables.__getitem__, itertools.count())
    return set(itertools.takewhile(lambda variable: variable is not None, places))
