"""`Plugin`: the class through which a device package offers a backend to plugrt."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from plugrt.errors import Unimplemented
from plugrt.interface import Client, OptionValue

if TYPE_CHECKING:
    from plugrt.interface import TensorType, Topology
    from plugrt.plugins.coordination import Connection
    from plugrt.settings.declarations import Config

LoweringRule = Callable[..., Any]
"""Maps a `LoweringContext` and the operands to the results, computed with plugrt's functions; None
keeps the operation."""


class LoweringContext(NamedTuple):
    """An operation of a program that is lowered for a platform. JAX's ``LoweringRuleContext``."""

    operation: str
    """Its name: ``stablehlo.cosine``, ``chlo.erf``, or a composite's name."""
    platform: str
    """The platform, as the lowering names it."""
    result_types: tuple[TensorType, ...]
    """Shape and dtype of each result that is to be returned."""
    attributes: Mapping[str, Any]
    """The operation's or the composite's attributes as Python values; as MLIR's text if there is no
    such value."""
    version: int = 0
    """The version of a composite."""


class Availability(NamedTuple):
    """Whether a plugin can work on this machine; if not, the reason and the cure."""

    available: bool
    reason: str = ""
    cure: str = ""

    @classmethod
    def yes(cls, reason: str = "") -> Availability:
        """The plugin can work here."""
        return cls(True, reason)

    @classmethod
    def no(cls, reason: str, cure: str = "") -> Availability:
        """The plugin cannot work here, for this reason; ``cure`` is a remedy."""
        return cls(False, reason, cure)


class Declared(NamedTuple):
    """The type that an attribute of a plugin must have: in words, and as a check of a value."""

    expected: str
    accepts: Callable[[Any], bool]


def is_names(value: object) -> bool:
    """Whether a value is a collection of strings, and not a string itself."""
    return (
        isinstance(value, Collection)
        and not isinstance(value, str | bytes | Mapping)
        and all(isinstance(name, str) for name in value)
    )


def is_version(value: object) -> bool:
    """Whether a value is a version of the interface: a pair of numbers."""
    return isinstance(value, tuple) and list(map(type, value)) == [int, int]


TEXT = Declared("a text", lambda value: isinstance(value, str))
FLAG = Declared("True or False", lambda value: isinstance(value, bool))
_NAMES = Declared("a tuple of names", is_names)
_INTEGER = Declared("an int", lambda value: type(value) is not bool and isinstance(value, int))
_VERSION = Declared("a pair of numbers, such as (1, 0)", is_version)
_OPTIONS = Declared("a mapping of names to values", lambda value: isinstance(value, Mapping))


class Plugin:
    """A backend that can be found, chosen and started. Subclass it and offer an instance.

    An instance is cheap: importing the module that defines it must not import or open a native
    library. Offer it through the entry-point group ``plugrt.plugins`` (value ``module:object``)
    or with ``plugrt.plugins.register(plugin)``.
    """

    name: str = ""
    """The name that users select with ``JAX_PLATFORMS``; unique among installed plugins."""
    platform: str = ""
    """The platform its client reports, when that differs from ``name``."""
    priority: int = 400
    """The highest available priority is the default backend (cpu 0, tpu 300, cuda 500).

    A plugin whose priority is negative is never the default: it is used where it is named.
    """
    experimental: bool = False
    """Whether choosing it prints one warning that it is experimental."""
    aliases: Sequence[str] = ()
    """Other names that mean this plugin among others, such as ``gpu``.

    They are known once the plugin is imported: always for one that is registered, and where
    JAX_PLATFORMS is unset. For an alias in JAX_PLATFORMS to cause the import, declare it as data:
    an entry point ``alias = "plugin"`` of the group ``plugrt.aliases``.
    """
    interface_version: tuple[int, int] = (1, 0)
    """The version of `plugrt.interface` that the plugin is written for. ¶ Write a literal, such as
    ``(1, 0)``, and not ``interface.VERSION``, which is the installed plugrt's.

    A newer plugrt runs it as long as the major version is the same. The default is the first
    version.
    """
    topology_names: Sequence[str] = ()
    """Names that `create_topology` accepts, as examples; the conformance kit tries the first."""
    conformance_options: Mapping[str, OptionValue] = {}
    """The conformance kit's default create options, such as those for several virtual devices,
    without which level 4 cannot be reached."""
    waits_for: str = ""
    """The likely reason of a slow start, for the warning about it."""

    _declared = MappingProxyType({
        "name": TEXT,
        "platform": TEXT,
        "priority": _INTEGER,
        "experimental": FLAG,
        "aliases": _NAMES,
        "interface_version": _VERSION,
        "topology_names": _NAMES,
        "conformance_options": _OPTIONS,
        "waits_for": TEXT,
    })  # fmt: skip
    """The type of each attribute; `find_fault` compares."""

    def probe(self) -> Availability:
        """Returns whether the hardware seems to be present.

        Called before anything is loaded: opens no library, uses no network, needs under 100 ms.
        """
        return Availability.yes()

    def client_options(self, config: Config) -> dict[str, OptionValue]:
        """Returns the create options that follow from the configuration."""
        return {}

    def create_client(
        self, options: Mapping[str, OptionValue], distributed: Connection | None = None
    ) -> Client:
        """Starts the backend.

        ``distributed`` is None in a single process, else the
        `plugrt.plugins.coordination.Connection` to the others: the client must then report as many
        processes, and this one's index (`PluginBroken` otherwise).
        """
        raise Unimplemented(f"plugin {self.name!r} does not implement create_client")

    def create_topology(self, name: str, options: Mapping[str, OptionValue]) -> Topology:
        """Returns the topology of that name, for compiling without the device. Optional."""
        raise Unimplemented(f"plugin {self.name!r} cannot compile for absent devices")

    def lowerings(self) -> Mapping[str, LoweringRule]:
        """Returns functions that compute plugrt's own operations on this platform. Optional.

        They are lowerings like those of the hook ``plugrt_lowerings``, but for operations that are
        neither StableHLO's nor CHLO's: ``plugrt.linalg.cholesky``, ``eigh``, ``lu``, ``qr``,
        ``svd`` and ``triangular_solve`` (see docs/extending.md). If one is missing, or returns
        None, plugrt's own definition by StableHLO operations is used. Called once, when a program
        with such an operation is first lowered for the plugin.
        """
        return {}

    def __repr__(self) -> str:
        return f"<plugin {self.name!r} of {type(self).__module__}>"


NAME = re.compile(r"[A-Za-z_][\w.\-]*")
"""The form of plugin names, which must be usable in JAX_PLATFORMS."""
NAME_RULE = "use letters, digits, '_', '-' and '.', with a letter or '_' first"


def find_fault(plugin: object) -> str:
    """Returns the fault of an offered plugin, with the cure; empty if it is valid."""
    if isinstance(plugin, type):
        arguments = "()" if issubclass(plugin, Plugin) else "(...)"
        return (
            f"the class {plugin.__module__}.{plugin.__qualname__} was given where an instance "
            f"is needed; give {plugin.__qualname__}{arguments}"
        )
    if not isinstance(plugin, Plugin):
        return (
            f"{plugin!r} is a {type(plugin).__name__}, not a plugrt.plugins.Plugin; subclass "
            "Plugin and give an instance of it"
        )
    cls = f"{type(plugin).__module__}.{type(plugin).__qualname__}"
    if not plugin.name:
        return f"a {cls} has no name; set its attribute `name` to what users type in JAX_PLATFORMS"
    if isinstance(plugin.name, str) and not NAME.fullmatch(plugin.name):
        return f"the name {plugin.name!r} of {cls} cannot be used in JAX_PLATFORMS; {NAME_RULE}"
    values = {name: getattr(plugin, name) for name in plugin._declared}
    return find_wrong_type(plugin, values)


def find_wrong_type(plugin: Plugin, values: Mapping[str, object]) -> str:
    """Returns the first of these attributes that has another type than declared, and the cure."""
    for name, value in values.items():
        expected, accepts = plugin._declared[name]
        if not accepts(value):
            return (
                f"the {name} of {plugin!r} is {value!r:.60}, of type {type(value).__name__}; "
                f"it must be {expected}"
            )
    return ""


HOOK_PREFIX = "plugrt_"


def is_hook_implementation(offered: object) -> bool:
    """Whether an object (a module, an instance) has members named as hooks are."""
    return any(name.startswith(HOOK_PREFIX) for name in dir(offered))
