"""The cuda plugin of plugrt, over NVIDIA PJRT libraries. Importing it loads none of them."""

from plugrt_cuda.plugin import CudaPlugin, plugin

__all__ = ["CudaPlugin", "plugin"]
