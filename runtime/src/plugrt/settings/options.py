"""`Options`: the values of declared settings, their overrides, and the token as their key.

`plugrt.settings.declarations` declares plugrt's settings on a subclass.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from plugrt.errors import ConfigError, SettingInUse, UnknownSetting
from plugrt.lifetime.interruptions import scope
from plugrt.settings.option import Option, Overrides


class Surroundings:
    """A setting whose value is kept in attributes of other objects.

    The compiled core caches the value, so one C function makes each change and updates that cache:
    no other code runs between the two.
    """

    __slots__ = ("change",)

    def __init__(self) -> None:
        self.change: Callable[[Any, str, Any], object] = setattr
        """Sets the attribute of that name; the compiled core puts its own function here."""


surroundings = Surroundings()


T = TypeVar("T")


class Token:
    """One combination of the settings that affect calls; equal settings give the same object.

    ``trace`` is the token of those settings that affect tracing. A cache with tokens as keys makes
    its entries of their ``settings``: those in force may have changed since the token was read.
    """

    __slots__ = ("__weakref__", "guarded", "settings", "trace", "values")

    trace: Token

    def __init__(self, values: tuple[Any, ...], settings: Mapping[str, object]) -> None:
        self.values = values
        self.settings = settings
        self.guarded = False
        """Whether transfers are logged or refused; each transfer tests this first."""

    def __repr__(self) -> str:
        return f"<settings {self.values}>"


class _ThreadToken(threading.local):
    value: Token | None = None


class Options:
    """Base of `Config`: the values of the options that the subclass declares.

    A value comes from the innermost `override` of this thread, else from `update`, else from the
    environment when the option was first read, else it is the default.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._lock = threading.RLock()  # reentrant: a finaliser may call `token`
        self._known: dict[str, tuple[Any, str]] = {}
        self._overrides = Overrides()
        self._token = _ThreadToken()
        self._fixed: dict[str, str] = {}
        self._holders: weakref.WeakKeyDictionary[object, str] = weakref.WeakKeyDictionary()
        self._tokens: weakref.WeakValueDictionary[tuple[object, ...], Token] = (
            weakref.WeakValueDictionary()
        )

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            self._option(name).__set__(self, value)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not name.startswith("_"):
            self._option(name).__delete__(self)
        object.__delattr__(self, name)

    if not TYPE_CHECKING:  # type checkers use the declared names

        def __getattr__(self, name: str) -> Any:
            """Reads an option by JAX's name, with the leading ``jax_``."""
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return self.lookup(self._option(name))[0]

    @classmethod
    def declared(cls) -> dict[str, Option[Any]]:
        """Returns every option by name, in the order of declaration."""
        return {n: o for base in reversed(cls.__mro__) for n, o in vars(base).items()
                if isinstance(o, Option)}  # fmt: skip

    @classmethod
    def table(cls) -> str:
        """Returns the table of all options as Markdown."""
        rows = [
            "| variable | `config.` | accepts | default | affects tracing | read at the start | "
            "what it does |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for o in cls.declared().values():
            accepts = o.type.accepts.replace("|", "\\|")
            default = "unset" if o.default is None or o.default in ((), {}) else f"`{o.default}`"
            traced = "yes" if o.traced else "launches" if o.launched else ""
            start = "yes" if o.at_start else ""
            cells = (f"`{o.env}`", f"`{o.name}`", accepts, default, traced, start, o.doc)
            rows.append(f"| {' | '.join(cells)} |")
        return "\n".join(rows) + "\n"

    def lookup(self, option: Option[T]) -> tuple[T, str]:
        """Returns the value and its source: override, update, environment or default."""
        known = self._known  # an update meanwhile replaces it
        found = self._overrides.values.get(option.name) or known.get(option.name)
        if found is None:
            # Without the lock: two threads that race here read the same environment.
            found = known[option.name] = option.read(self._environ)
        return found

    def update(self, name: str, value: object) -> None:
        """Sets an option for every thread. A leading ``jax_`` in ``name`` is ignored.

        Raises `UnknownSetting` (an ``AttributeError``, as in JAX) for an unknown name,
        `ConfigError` for an invalid value, and `SettingInUse` (a ``RuntimeError``, as in JAX) where
        started backends have read another value.
        """
        option, checked = self._validate(name, value)
        with self._lock:
            self._known = {**self._known, option.name: (checked, "update")}
            self._drop_tokens()

    @scope
    def override(self, **values: object) -> Iterator[None]:
        """Sets options for this thread until the ``with`` block ends."""
        checked = {}
        for name, value in values.items():
            option, found = self._validate(name, value)
            checked[option.name] = (found, "override")
        local, before = self._overrides, self._overrides.values
        try:
            local.values = {**before, **checked}
            surroundings.change(self._token, "value", None)
            yield
        finally:
            local.values = before
            surroundings.change(self._token, "value", None)

    # The getters are C functions: each first call of a program reads these several times.
    surroundings = property(
        attrgetter("_overrides.surroundings"),
        doc="What surrounds the calls of this thread and is no setting: see `surround`.",
    )
    moment = property(
        attrgetter("_token"),
        doc="An object that is replaced whenever a setting of all threads changes.",
    )

    def swap_surroundings(self, value: Hashable) -> Any:
        """Sets the surroundings of the calls of this thread, and returns the previous ones."""
        before = self._overrides.surroundings
        try:
            self._overrides.surroundings = value
            surroundings.change(self._token, "value", None)
        except BaseException:  # an interrupt: the caller gets nothing to restore
            self._overrides.surroundings = before
            surroundings.change(self._token, "value", None)
            raise
        return before

    @scope
    def surround(self, value: Hashable, *, after: tuple[Hashable, ...] = ()) -> Iterator[None]:
        """Sets the surroundings of this thread's calls until the ``with`` block ends.

        Then it sets ``after``, if given, else the previous surroundings. They are a part of both
        tokens: traces and placements may depend on them.
        """
        local = self._overrides
        (before,) = after or (local.surroundings,)
        try:
            local.surroundings = value
            surroundings.change(self._token, "value", None)
            yield
        finally:
            local.surroundings = before
            surroundings.change(self._token, "value", None)

    def check(self) -> None:
        """Reads every option that is set; raises `ConfigError` for the first invalid one."""
        there = set(self._environ)
        for option in self.declared().values():
            if option.env in there or option.also in there or option.derive is not None:
                self.lookup(option)

    def hold(self, holder: object, why: str) -> None:
        """Refuses changes of ``at_start`` options while ``holder`` lives; ``why`` is the reason."""
        self._holders[holder] = why

    def release(self, holder: object) -> None:
        """Ends a `hold`."""
        self._holders.pop(holder, None)

    def fix(self, name: str, why: str) -> None:
        """Refuses changes of one option from now on; ``why`` is the reason."""
        self._fixed[name] = why

    def reread(self) -> None:
        """Reads the environment again at the next lookup; updates stay."""
        with self._lock:
            known = self._known.copy()  # in C: other threads add to it
            self._known = {n: found for n, found in known.items() if found[1] == "update"}
            self._drop_tokens()

    def reset(self) -> None:
        """Drops updates, this thread's overrides, and values read from the environment."""
        with self._lock:
            self._known = {}
            self._overrides.values = {}
            self._overrides.surroundings = None
            self._drop_tokens()

    def _drop_tokens(self) -> None:
        """Drops the tokens of all threads, which are made again when needed."""
        surroundings.change(self, "_token", _ThreadToken())

    def token(self) -> Token:
        """Returns an object that represents this thread's settings that affect calls.

        It is the same object for equal settings, so that a cache compares it with ``is``.
        """
        return self._token.value or self._make_token()

    def _make_token(self) -> Token:
        # The holder is read first: a concurrent update replaces it, and the token made of the old
        # values is then not kept.
        holder = self._token
        declared = [o for o in self.declared().values() if o.traced or o.launched]
        found = {o.name: self.lookup(o)[0] for o in declared}
        traced = (*(found[o.name] for o in declared if o.traced), self.surroundings)
        launched = tuple(found[o.name] for o in declared if o.launched)
        with self._lock:
            token = self._intern((traced, launched), found)
            token.trace = self._intern((traced,), found)
        holder.value = token
        return token

    def _intern(self, values: tuple[object, ...], settings: Mapping[str, object]) -> Token:
        token = self._tokens.get(values)
        if token is None:
            made = Token(values, settings)  # a finaliser that runs meanwhile may make it, too
            token = self._tokens.setdefault(values, made)
        return token

    def _validate(self, name: str, value: object) -> tuple[Option[object], object]:
        """Returns the option of that name and the value, if it is valid and may change now."""
        option = self._option(name)
        checked = option.validate(value)
        if option.name in self._fixed and checked != self.lookup(option)[0]:
            raise SettingInUse(
                f"{option.name} cannot become {checked!r} now: {self._fixed[option.name]}; set "
                f"{option.env} before the program starts"
            )
        if option.at_start and self._holders and checked != self.lookup(option)[0]:
            raise SettingInUse(
                f"{option.name} cannot become {checked!r} now: backends read it when they start "
                f"({', '.join(self._holders.values())}); set it before devices are first asked "
                "for, or call plugrt.clear_backends() first"
            )
        return option, checked

    def _option(self, name: str) -> Option[object]:
        if not isinstance(name, str):
            raise ConfigError(f"an option is named by a string; got {name!r:.60}")
        declared = self.declared()
        known = declared.get(name) or declared.get(name.removeprefix("jax_"))
        if known is None:
            from difflib import get_close_matches  # for errors alone

            close = get_close_matches(name.removeprefix("jax_"), declared, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise UnknownSetting(
                f"there is no option {name!r}{hint} (python -m plugrt.settings lists all)"
            )
        return known
