"""Level 0: the plugin before anything is started. Needs no hardware."""

from __future__ import annotations

import time

from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.plugin import Availability, find_fault
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.expect import expect, expect_equal
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.target import find_library_fault

CHAPTER = Chapter(
    "host", Level.INSTALLS, "docs/plugins.md: what a plugin offers", demand=Demand.PLUGRT
)

_PROBE_SECONDS = 0.1
_TRIES = 5
_SETTLE_SECONDS = 2.0


@CHAPTER.check(
    "import",
    needs=Needs.PLUGIN,
    rests_on="plugrt.plugins: importing a plugin touches no device",
    demand=Demand.REFERENCE,
    why="each program on the machine that looks for devices stops there",
)
def import_ends(subject: PluginSubject) -> None:
    """The import of the plugin ends, without an error."""
    expect(subject.plugin is not None, "a plugin", None)


@CHAPTER.check(
    "plugin.valid",
    needs=Needs.PLUGIN,
    why="a host ignores the plugin, or stops with an error that names it",
)
def plugin_is_valid(subject: PluginSubject) -> None:
    """The object that the entry point names is imported and is a valid plugin."""
    expect_equal(find_fault(subject.plugin), "", "no fault of the plugin:")


@CHAPTER.check(
    "plugin.name",
    needs=Needs.PLUGIN,
    why="users select it by one name, and get an error that says another",
)
def plugin_has_its_name(subject: PluginSubject) -> None:
    """An installed plugin has the name of its entry point."""
    plugin = subject.plugin
    if subject.target.kind == "plugin":
        wanted = subject.target.name.partition("@")[0]
        expect(wanted in (plugin.name, *plugin.aliases, plugin.platform), f"name {wanted!r}",
               plugin.name)  # fmt: skip
    expect(plugin.name, "a name", plugin.name)


@CHAPTER.check(
    "library", needs=Needs.PLUGIN, why="nothing works, and users are not told what to install"
)
def library_is_there(subject: PluginSubject) -> None:
    """The library of a PJRT library's plugin exists as a file."""
    plugin = subject.plugin
    fault = find_library_fault(plugin) if isinstance(plugin, LibraryPlugin) else ""
    expect(not fault, "the library", fault)


@CHAPTER.check(
    "import.threads", needs=Needs.PLUGIN, why="a program that forks after importing it may hang"
)
def import_starts_no_thread(subject: PluginSubject) -> None:
    """Importing the plugin starts no thread."""
    _ = subject.plugin
    until = time.monotonic() + _SETTLE_SECONDS  # plugrt's own timer of the import is ending
    while (left := subject.import_effects.living_threads()) and time.monotonic() < until:
        time.sleep(0.01)
    expect(not left, "no new threads", left)


@CHAPTER.check(
    "import.environment",
    needs=Needs.PLUGIN,
    why="other plugins and child processes meet settings that nobody made",
)
def import_sets_no_variable(subject: PluginSubject) -> None:
    """Importing the plugin changes no variable of the environment."""
    _ = subject.plugin
    changed = sorted(subject.import_effects.names)
    expect(not changed, "no changed variables", changed)


@CHAPTER.check(
    "import.devices",
    needs=Needs.PLUGIN,
    why="the device is taken from programs that did not choose it",
)
def import_opens_no_device(subject: PluginSubject) -> None:
    """Importing the plugin opens no device file."""
    _ = subject.plugin
    opened = sorted(subject.import_effects.devices)
    expect(not opened, "no opened devices", opened)


@CHAPTER.check(
    "probe.answer",
    needs=Needs.PLUGIN,
    covers=(),
    why="users are not told what is missing and what would help",
)
def probe_answers(subject: PluginSubject) -> None:
    """The probe states whether the plugin can work here, with a reason if it cannot."""
    answer = subject.plugin.probe()
    expect(isinstance(answer, Availability), "an Availability", answer)
    expect(answer.available or answer.reason.strip(), "a reason for being unavailable", answer)


@CHAPTER.check(
    "probe.time",
    needs=Needs.PLUGIN,
    rests_on="plugrt.plugins.Plugin.probe: under 100 ms",
    why="every program on the machine waits for it, whatever device it uses",
)
def probe_is_quick(subject: PluginSubject) -> None:
    """The fastest of five probes needs less than 100 ms."""
    best = min(_seconds(subject) for _ in range(_TRIES))
    expect(
        best < _PROBE_SECONDS, f"less than {_PROBE_SECONDS * 1e3:.0f} ms", f"{best * 1e3:.0f} ms"
    )


def _seconds(subject: PluginSubject) -> float:
    begin = time.perf_counter()
    subject.plugin.probe()
    return time.perf_counter() - begin
