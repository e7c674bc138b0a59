"""`find_rules`: the lowerings that are registered for a platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

from plugrt.errors import PluginBroken, ProgramError
from plugrt.execution.executables.custom_call_targets import find_linear_algebra
from plugrt.interface import Client
from plugrt.plugins.offers.offers import Kept
from plugrt.plugins.plugin import LoweringRule, Plugin
from plugrt.plugins.record import Record
from plugrt.plugins.selection.backends import process_backends
from plugrt.settings.declarations import config
from plugrt.stablehlo.bindings import chlo, hlo
from plugrt.tracing.platform_operations import NAMES

GROUP = "plugrt.lowerings"
_OWN = "config.lowerings"
_OWN_OPERATIONS = "plugrt.linalg."
_DIALECTS = ("stablehlo", "chlo")
_NOT_COMPOSITES = ("lax", "array_api", "xp", "jax", "jnp", "np", "numpy", "hlo", "mhlo", "func")
"""Prefixes that mean an operation by mistake; a composite's prefix is its maker's."""


class Rule(NamedTuple):
    """A lowering, the name of the platform that it is for, and who registered it."""

    function: LoweringRule
    platform: str
    owner: str


Rules = tuple[tuple[str, tuple[Rule, ...]], ...]
"""The rules of each operation; several are a conflict between packages."""


def find_rules(platforms: Sequence[str]) -> Rules:
    """Returns the lowerings for a platform, by its names; lowerings for earlier names precede.

    For one name, lowerings in ``config.lowerings`` precede those from packages, which are imported
    the first time. Raises `ProgramError` for a setting that names an operation which does not
    exist.
    """
    table = process_backends().table
    found: dict[str, tuple[Rule, ...]] = {}
    for platform in platforms:
        own = {name: (Rule(f, platform, _OWN),) for p, name, f in config.lowerings if p == platform}
        for name in own:
            if fault := find_fault(name):
                raise ProgramError(f"{_OWN} has a lowering of {name!r} for {platform!r}: {fault}")
        offered: dict[str, tuple[Rule, ...]] = {}
        for offers in _installed.get(table, platform, platform=platform):
            for name, rule in offers:
                offered[name] = (*offered.get(name, ()), rule)
        for name, rules in {**offered, **own}.items():
            found.setdefault(name, rules)
    return tuple(found.items())


def with_plugin_rules(rules: Rules, platforms: Sequence[str]) -> Rules:
    """Returns rules followed by those of the platform's plugin for plugrt's own operations.

    Then come the rules that packages offer its client (the hook ``plugrt_linear_algebra``).

    Raises `PluginBroken` for a plugin whose ``lowerings`` are not a mapping from names to
    functions.
    """
    row = process_backends().find_plugin(platforms)
    if row is None or row.plugin is None:
        return rules
    own = _of_plugins.get(row.plugin)
    if own is None:  # called once: its functions are a part of programs' keys
        own = _of_plugins.setdefault(row.plugin, _read_plugin(row, row.plugin))
    if row.client is not None:  # packages offer rules for a client
        own = (*own, *_read_offers(row.client))
    known = dict(rules)
    for name, found in own:
        known.setdefault(name, found)
    return tuple(known.items())


# Process-wide: read from a plugin once; goes with it.
_of_plugins: WeakKeyDictionary[Plugin, Rules] = WeakKeyDictionary()


def _read_plugin(row: Record, plugin: Plugin) -> Rules:
    given = plugin.lowerings()
    if not isinstance(given, Mapping):
        raise PluginBroken(
            f"lowerings() of {row} returned {given!r:.60}; a dict of functions by name is needed"
        )
    for name, function in given.items():
        if name not in NAMES or not callable(function):
            raise PluginBroken(
                f"lowerings() of {row} gives {name!r:.60}: {function!r:.60}; it gives functions by "
                f"the names of plugrt's own operations, which are {', '.join(NAMES)}"
            )
    return tuple((name, (Rule(f, row.name, row.who),)) for name, f in given.items())


def _read_offers(client: Client) -> Iterator[tuple[str, tuple[Rule, ...]]]:
    for name, function, record in find_linear_algebra(client).lowerings:
        yield name, (Rule(function, record.name, record.who),)


def has_rules() -> bool:
    """Whether there may be lowerings for any platform; imports no package."""
    return bool(config.lowerings or process_backends().table.implementing(GROUP))


def _read(record: Record, answer: object) -> list[tuple[str, Rule]]:
    if not isinstance(answer, Mapping):
        raise PluginBroken(
            f"plugrt_lowerings returned {answer!r:.60}; a dict of functions by name is needed"
        )
    for name, function in answer.items():
        if not isinstance(name, str) or not callable(function):
            raise PluginBroken(
                f"plugrt_lowerings gives {name!r:.60}: {function!r:.60}; it gives functions by the "
                "names of operations"
            )
        if fault := find_fault(name):
            raise PluginBroken(f"it has a lowering of {name!r}: {fault}")
    return [(name, Rule(f, record.name, record.who)) for name, f in answer.items()]


_installed = Kept(GROUP, "lowerings", _read)


def find_fault(name: str) -> str:
    """Returns what is wrong with the name of an operation or a composite; empty if nothing is."""
    if name.startswith(_OWN_OPERATIONS):
        return "" if name in NAMES else f"plugrt's own operations are {', '.join(NAMES)}"
    dialect, dot, _ = name.partition(".")
    if name in _operation_names() or (dot and dialect not in (*_DIALECTS, *_NOT_COMPOSITES)):
        return ""
    words = {known.partition(".")[2]: known for known in reversed(_operation_names())}
    word = name.rpartition(".")[2]
    longer = [known for known in words if word and known.startswith(word)]
    close = get_close_matches(word, words, n=2, cutoff=0.6)
    near = [words[known] for known in dict.fromkeys((*longer, *close))]
    near = sorted(near, key=lambda known: _DIALECTS.index(known.partition(".")[0]))[:3]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return (
        f"there is no such operation{hint} (the names are StableHLO's and CHLO's, as in "
        "lower().as_text(), and those of composites, which have a dot)"
    )


@cache
def _operation_names() -> tuple[str, ...]:
    return tuple(dict.fromkeys(_names()))


def _names() -> Iterator[str]:
    for dialect, bindings in zip(_DIALECTS, (hlo, chlo), strict=True):
        for member in vars(bindings).values():
            name = getattr(member, "OPERATION_NAME", "")
            if name.startswith(f"{dialect}."):
                yield name
