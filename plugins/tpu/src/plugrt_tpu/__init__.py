"""The tpu plugin of plugrt, over Google's libtpu. Importing it does not load libtpu."""

from plugrt_tpu.plugin import TpuPlugin, plugin

__all__ = ["TpuPlugin", "plugin"]
