"""`Record`: the state of one candidate plugin, from discovery to its client."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plugrt.errors import PluginError
from plugrt.interface import Client, OptionValue
from plugrt.plugins.packages.distributions import normalise_name
from plugrt.plugins.plugin import Plugin
from plugrt.plugins.vendors import Hardware, find_hardware

if TYPE_CHECKING:
    from plugrt.plugins.packages.description import Description


class Source(enum.StrEnum):
    """The place where a candidate was found; for one name, an earlier source takes precedence."""

    REGISTERED = "registered"
    ENVIRONMENT = "environment"
    ENTRY_POINT = "plugrt.plugins"
    JAX = "jax_plugins"
    XLA = "xla_plugins"
    TORCH = "torch_xla_plugins"

    @property
    def rank(self) -> int:
        """The precedence: 0 is the highest; the two groups of plugins for JAX have the same."""
        order = list(Source)
        return order.index(Source.JAX if self is Source.XLA else self)


class State(enum.StrEnum):
    """How far a candidate has come, or why it is not used."""

    FOUND = "found"
    LOADED = "loaded"
    INITIALISED = "initialised"
    UNAVAILABLE = "unavailable"
    BROKEN = "broken"
    INCOMPATIBLE = "incompatible"
    DUPLICATE = "duplicate"
    NOT_SELECTED = "not selected"


class Record:
    """One candidate. ``reason`` explains its state, ``cure`` is a remedy.

    ``value`` is the entry point's value, the module, or the caller that registered it; ``library``
    the PJRT library if it is known; ``elapsed_ms`` the time of importing and starting it so far.
    ``blocked`` by the settings, ``hidden`` by another of its name, ``rivalled`` by one of equal
    precedence: then its plain name is ambiguous. The real name of a row that is not ``named`` is
    unknown, because it cannot be read. ``order`` is its position among the candidates that the user
    or the program listed. ``registered`` is JAX's name of a plugin made for it, once its code has
    registered it. ``note`` adds to the reason, such as why its own code was not used.
    """

    platform: str = ""
    state: State = State.FOUND
    reason: str = ""
    cure: str = ""
    traceback: str = ""
    elapsed_ms: float = 0.0
    blocked: bool = False
    hidden: bool = False
    rivalled: bool = False
    note: str = ""
    client: Client | None = None
    failure: PluginError | None = None
    _description: Description | None = None

    def __init__(
        self,
        name: str,
        source: Source,
        distribution: str = "",
        version: str = "",
        value: str = "",
        location: str = "",
        *,
        library: str = "",
        options: Mapping[str, OptionValue] | None = None,
        aliases: tuple[str, ...] = (),
        priority: int | None = None,
        named: bool = True,
        order: int = 0,
        registered: str = "",
        plugin: Plugin | None = None,
    ) -> None:
        self.name, self.source = name, source
        self.distribution, self.version = distribution, version
        self.value, self.location, self.library = value, location, library
        self.options, self.aliases, self.priority = options or {}, aliases, priority
        self.named, self.order, self.registered = named, order, registered
        self.plugin = plugin

    @property
    def who(self) -> str:
        """Its owner, for messages: distribution and version, or the source."""
        if self.distribution:
            return f"{self.distribution} {self.version}".rstrip()
        if self.source is Source.ENVIRONMENT:
            return "PJRT_NAMES_AND_LIBRARY_PATHS"
        if self.source is Source.REGISTERED:
            return f"registered by {self.value}"
        return f"module {self.value}"

    def __str__(self) -> str:
        return f"{self.name!r} ({self.who})"

    def set_state(self, state: State, reason: str = "", cure: str = "") -> None:
        """Sets a new state with its reason and cure; an unusable candidate always has a cure."""
        self.state, self.reason, self.cure = state, reason, cure or self._find_usual_cure(state)

    def _find_usual_cure(self, state: State) -> str:
        newer = f"pip install --upgrade {self.distribution}, or " if self.distribution else ""
        block = f"PLUGRT_PLUGINS_BLOCK={self.name} excludes it"
        match state:
            case State.BROKEN | State.INCOMPATIBLE:
                return f"{newer}{block}; `plugrt doctor` shows more"
            case State.UNAVAILABLE:
                return f"it is for machines with its hardware; {block}"
            case State.DUPLICATE:
                if self.distribution:
                    return f"JAX_PLATFORMS={self.name}@{self.distribution} selects it"
                return f"it is used where the other {self.name!r} is not there"
            case State.NOT_SELECTED:
                return f"JAX_PLATFORMS={self.name} selects it"
            case _:
                return ""

    @property
    def module(self) -> str:
        """The module that its entry point names."""
        return self.value.partition("[")[0].partition(":")[0].strip()

    @contextmanager
    def noting_environment(self) -> Iterator[None]:
        """Notes which environment variables its code changes within the block."""
        before = dict(os.environ)
        try:
            yield
        finally:
            changed = {name for name, _ in before.items() ^ os.environ.items()}
            if changed:
                words = f"its code changed the environment: {', '.join(sorted(changed))}"
                self.add_note(words)

    def add_note(self, words: str) -> None:
        """Adds a sentence that is shown beside its reason."""
        self.note = "; ".join(filter(None, (self.note, words)))

    @property
    def description(self) -> Description:
        """Its description from files; read at the first use."""
        from plugrt.plugins.packages.description import Description  # not needed by every start

        found = Description(self.value, self.location, bool(self.distribution),
                            self.is_made_for_others, self.library)  # fmt: skip
        if found != self._description:
            self._description = found
        return self._description or found

    @property
    def registers(self) -> str:
        """JAX's name of it: the one that it registered, else the one in its source, if any."""
        if self.registered or self.source is not Source.JAX:
            return self.registered
        return self.description.registers

    @property
    def hardware(self) -> list[Hardware]:
        """The device types that it is for, by its names and by its library's dependencies."""
        return find_hardware((self.name, *self.other_names), self.description.needed)

    @property
    def other_names(self) -> tuple[str, ...]:
        """Its aliases, JAX's name of it among them."""
        names = dict.fromkeys((*self.aliases, self.registers))
        return tuple(name for name in names if name not in ("", self.name))

    def reset(self) -> None:
        """Resets state and failure; its client must be closed before."""
        self.failure, self.traceback, self.note = None, "", ""
        self.blocked = self.hidden = self.rivalled = False
        self.set_state(State.FOUND)

    @property
    def is_made_for_others(self) -> bool:
        """Whether it was made for JAX or PyTorch: used if named, or if no other works."""
        return self.source in (Source.JAX, Source.XLA, Source.TORCH)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """A key that is unique, and stable across scans and processes."""
        return str(self.source), self.name, self.distribution, self.value

    @property
    def is_eligible(self) -> bool:
        """Whether an automatic choice may select it."""
        return self.named and not (self.blocked or self.hidden or self.rivalled)

    def matches_name(self, name: str) -> bool:
        """Whether ``name``, or ``name@distribution``, is its name or one of its own aliases."""
        name, at, owner = name.partition("@")
        return (name == self.name or name in self.other_names) and (
            not at or self.belongs_to(owner)
        )

    def belongs_to(self, distribution: str) -> bool:
        """Whether the distribution of that name, however it is spelt, offers this candidate."""
        return normalise_name(distribution) == normalise_name(self.distribution)

    def _describe_table(self) -> str:
        if getattr(self.plugin, "c_api", None) is None:
            return ""
        return "a function table in this process, which cannot be tried in another"

    def as_dict(self) -> dict[str, Any]:
        """Returns the row as a JSON object."""
        return {
            "name": self.name,
            "platform": self.platform or self.registers or self.name,
            "priority": self.priority,
            "source": str(self.source),
            "distribution": self.distribution,
            "version": self.version,
            "value": self.value,
            "library": self.library or self._describe_table(),
            "state": str(self.state),
            "reason": self.reason,
            "cure": self.cure,
            "traceback": self.traceback,
            "elapsed_ms": round(self.elapsed_ms, 3),
        }


def sort_key(record: Record) -> tuple[int, int, str, str, str]:
    """The sort key of records in the table, which also decides between equal priorities."""
    return record.source.rank, record.order, record.name, record.distribution, record.value
