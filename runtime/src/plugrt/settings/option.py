"""`Option`: one declared setting, with its environment variable and its type."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar, overload

from plugrt.errors import ConfigError, ReadOnlySetting

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
D = TypeVar("D")


class OptionType(NamedTuple, Generic[T_co]):
    """The type of an option: ``parse`` reads text, ``check`` validates a Python value.

    Both raise `ValueError` for an invalid value; ``accepts`` describes the valid ones.
    """

    name: str
    accepts: str
    parse: Callable[[str], T_co]
    check: Callable[[object], T_co]


class Overrides(threading.local):
    """A thread's overrides: values with their source by name, and `Options.surround`'s."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[Any, str]] = {}
        self.surroundings: Hashable = None


class Settings(Protocol):
    """The class that declares options: `plugrt.settings.options.Options`."""

    _overrides: Overrides
    _known: dict[str, tuple[Any, str]]
    """The values and sources of options that were read or updated."""

    def lookup(self, option: Option[T]) -> tuple[T, str]:
        """Returns the value and its source."""


class Option(Generic[T]):
    """One setting: a descriptor whose value on a `Config` is the option's value in this thread.

    ``env`` is the variable that sets it and ``also`` an older one, read where ``env`` is not set;
    ``derive`` reads it from other variables where neither is set; ``traced`` means that it affects
    what is traced, ``launched`` that it affects how a traced program is placed or checked: both are
    part of `Options.token`; ``at_start`` that backends read it when they start, so it cannot change
    while they live.
    """

    def __init__(
        self,
        env: str,
        option_type: OptionType[Any],
        default: T,
        doc: str,
        *,
        traced: bool = False,
        launched: bool = False,
        at_start: bool = False,
        also: str = "",
        derive: Callable[[Mapping[str, str]], T] | None = None,
    ) -> None:
        self.env, self.type, self.default, self.doc = env, option_type, default, doc
        self.traced, self.launched = traced, launched
        self.at_start = at_start
        self.also, self.derive = also, derive
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Option[T]: ...
    @overload
    def __get__(self, instance: Settings, owner: type) -> T: ...
    def __get__(self, instance: Settings | None, owner: type) -> Option[T] | T:
        if instance is None:
            return self
        # A value that is known is found without a call: a first call of a program reads ten.
        name = self.name
        found = instance._overrides.values.get(name) or instance._known.get(name)
        value: T = (found or instance.lookup(self))[0]
        return value

    def __set__(self, instance: Settings, value: T) -> NoReturn:
        raise ReadOnlySetting(
            f"config.{self.name} cannot be assigned; call config.update({self.name!r}, "
            f"{value!r:.60}), or use the context manager config.override({self.name}={value!r:.60})"
        )

    def __delete__(self, instance: Settings) -> NoReturn:
        raise ReadOnlySetting(
            f"config.{self.name} cannot be deleted; config.reset() drops what was set"
        )

    def read(self, environ: Mapping[str, str]) -> tuple[T, str]:
        """Returns the value and its source; raises `ConfigError` for invalid text."""
        for variable in filter(None, (self.env, self.also)):
            text = environ.get(variable, "").strip()
            value = self._parse(text, f"{variable}={text!r}") if text else None
            if value is not None:  # some types have a value for "unset"
                return value, "environment"
        derived = self.derive(environ) if self.derive else None
        return (self.default, "default") if derived is None else (derived, "environment")

    def validate(self, value: object) -> T:
        """Returns ``value`` if it is valid for the option; raises `ConfigError` otherwise.

        The default (often None) is always valid; text is parsed as in the environment.
        """
        if value is None and self.default is None:
            return self.default
        try:
            checked: T = self.type.check(value)
        except (ValueError, TypeError, OverflowError) as error:
            shown = f"{self.name} = {value!r:.200}"
            if isinstance(value, str):
                return self._parse(value, shown)
            raise ConfigError(self._explain_refusal(shown, error)) from None
        return checked

    def _parse(self, text: str, what: str) -> T:
        try:
            value: T = self.type.parse(text)
        except (ValueError, OverflowError) as error:
            raise ConfigError(self._explain_refusal(what, error)) from None
        return value

    def _explain_refusal(self, what: str, error: Exception) -> str:
        why = f" ({error!s:.200})" if str(error) else ""
        return f"{what} cannot be understood{why}; accepted: {self.type.accepts}"


def option(
    env: str, option_type: OptionType[T], default: D, doc: str, **more: Any
) -> Option[T | D]:
    """Declares an option read from the environment variable ``env``; see `Option`."""
    return Option(env, option_type, default, doc, **more)
