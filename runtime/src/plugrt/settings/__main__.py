"""``python -m plugrt.settings``: prints every setting, as ``docs/configuration.md`` lists them."""

from __future__ import annotations

from plugrt.settings.declarations import Config

print(Config.table(), end="")
