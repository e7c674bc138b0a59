"""`explain_absence`: why plugrt-sdk was installed without its parts in C, and the cure."""

from __future__ import annotations

import sys
import sysconfig


def explain_absence(part: str, instead: str = "") -> str:
    """Returns the message that ``part`` is not installed, why, and the cure.

    ``instead`` names an alternative that works where there is no cure.
    """
    if sys.platform != "linux":
        return f"{part} is not installed: it is for Linux, and this is {sys.platform}. {instead}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"{part} is not installed: it needs a Python with the GIL. {instead}"
    return (
        f"{part} is not installed. The wheel of plugrt-sdk has it, and an installation from the "
        "sources builds it where there is a C compiler: install one, then plugrt-sdk again (pip "
        'install --force-reinstall plugrt-sdk; in a clone "make clean demo")'
    )
