"""`Hooks`: calls hooks through pluggy, one plugin at a time so that errors name the plugin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pluggy

from plugrt.errors import PluginBroken, describe
from plugrt.interface import Client
from plugrt.plugins import hookspecs
from plugrt.plugins.log import logger
from plugrt.plugins.plugin import HOOK_PREFIX, Plugin


class Hooks:
    """The objects with hook implementations that have been loaded."""

    def __init__(self, trace: bool = False) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._owners: list[tuple[object, str]] = []
        if trace:
            self._manager.trace.root.setwriter(lambda text: print(text, end="", file=sys.stderr))
            self._manager.enable_tracing()

    def register(self, offered: object, who: str) -> None:
        """Registers an object's hook implementations; `PluginBroken` for misspelt or wrong ones."""
        if self._manager.is_registered(offered):
            return
        try:
            self._manager.register(offered)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            if self._manager.is_registered(offered):
                self._manager.unregister(offered)
            known = [n for n in dir(hookspecs) if n.startswith(HOOK_PREFIX)]
            raise PluginBroken(
                f"{who} has a wrong hook implementation: {str(error).strip()} "
                f"(the hooks are {', '.join(known)})"
            ) from error
        self._owners.append((offered, who))

    def _call_hook(self, hook: str, offered: object, **arguments: object) -> list[Any]:
        others = [p for p in self._manager.get_plugins() if p is not offered]
        answers: list[object] = self._manager.subset_hook_caller(hook, others)(**arguments)
        return answers

    def collect_plugins(self, offered: object) -> list[Plugin]:
        """Returns the plugins of the object's ``plugrt_offer_plugins``."""
        answers: list[Sequence[Plugin]] = self._call_hook("plugrt_offer_plugins", offered)
        return [plugin for answer in answers for plugin in answer]

    def notify_client_created(self, name: str, client: Client) -> None:
        """Calls every ``plugrt_client_created``; an object that raises is named in a warning."""
        for offered, who in self._owners:
            try:
                self._call_hook("plugrt_client_created", offered, name=name, client=client)
            except Exception as error:  # noqa: BLE001 a listener's error must not lose the client
                logger.warning("plugrt_client_created of %s raised %s", who, describe(error))

    def call(self, hook: str, offered: object, **arguments: object) -> list[object]:
        """Calls the object's implementation of a hook; returns its result in a list, unless None.

        Raises `PluginBroken` if it does not implement that hook.
        """
        callers = self._manager.get_hookcallers(offered) or []
        if hook not in [caller.name for caller in callers]:
            raise PluginBroken(
                f"it does not implement {hook}: define that, decorated with plugrt.plugins.hookimpl"
            )
        return self._call_hook(hook, offered, **arguments)
