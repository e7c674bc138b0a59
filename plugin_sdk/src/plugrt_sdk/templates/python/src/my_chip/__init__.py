"""The device my-chip for plugrt, JAX and other PJRT hosts.

Hosts import this package wherever they look for platforms: nothing here loads the device.
"""

NAME = "my-chip"
"""The platform's name: what users write into JAX_PLATFORMS."""

PRIORITY = -1
"""Hosts choose the highest priority; their CPU has 0. One below 0 is used only if it is named.

It is negative while NumPy does the work. Make it 400 when the device does.
"""
