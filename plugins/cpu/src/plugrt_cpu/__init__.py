"""The cpu plugin of plugrt, over jaxlib's own CPU client. Importing it does not import jaxlib."""

import os

from plugrt.frames.traceback_filter import hide_frames
from plugrt_cpu.plugin import CpuPlugin, plugin

__all__ = ["CpuPlugin", "plugin"]

hide_frames(os.path.join(os.path.dirname(__file__), ""))
