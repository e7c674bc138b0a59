"""Whether the device is present: called before any part of it is loaded."""

from __future__ import annotations


def find_fault() -> tuple[str, str] | None:
    """Returns why the device cannot be used here and a cure; None if it can be used.

    Must be quick (under 100 ms): look at files, open no library and no connection. For example::

        if not Path("/dev/chip0").exists():
            return "there is no /dev/chip0", "load the driver: modprobe chip"
    """
    return None
