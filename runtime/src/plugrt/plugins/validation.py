"""Whether an object is a well-formed `Plugin`; if not, what is wrong and how to mend it."""

from __future__ import annotations

import re

from plugrt.plugins.plugin import Plugin

_NAME = re.compile(r"[A-Za-z_][\w.\-]*")
HOOK_PREFIX = "plugrt_"


def implements_hooks(offered: object) -> bool:
    """Whether an object (a module, an instance) has members named as hooks are."""
    return any(name.startswith(HOOK_PREFIX) for name in dir(offered))


def fault_of(plugin: object) -> str:
    """Returns what is wrong with an offered plugin, with the cure; empty if nothing is."""
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
    if not isinstance(plugin.name, str) or not plugin.name:
        return f"a {cls} has no name; set its attribute `name` to what users type in JAX_PLATFORMS"
    if not _NAME.fullmatch(plugin.name):
        return (
            f"the name {plugin.name!r} of {cls} cannot be used in JAX_PLATFORMS; use letters, "
            "digits, '_', '-' and '.', with a letter first"
        )
    if not isinstance(plugin.priority, int) or isinstance(plugin.priority, bool):
        return f"the priority of {plugin!r} is {plugin.priority!r}; it must be an int"
    if isinstance(plugin.aliases, str):
        return f"the aliases of {plugin!r} are the text {plugin.aliases!r}; give a tuple of names"
    return ""
