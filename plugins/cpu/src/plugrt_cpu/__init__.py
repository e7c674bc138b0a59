"""The cpu plugin of plugrt, over jaxlib's own CPU client. Importing it does not import jaxlib."""

from pathlib import Path

from plugrt.frames.traceback_filter import hide_frames
from plugrt_cpu.plugin import CpuPlugin, plugin

__all__ = ["CpuPlugin", "plugin"]

hide_frames(f"{Path(__file__).parent}/")
