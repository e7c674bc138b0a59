"""The cpu plugin of plugrt, over jaxlib's own CPU client. Importing it does not import jaxlib."""

from plugrt_cpu.plugin import CpuPlugin, plugin

__all__ = ["CpuPlugin", "plugin"]
