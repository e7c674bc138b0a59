"""The PJRT library of my-chip for plugrt, JAX and other PJRT hosts.

Hosts import this package wherever they look for platforms: nothing here loads the library.
"""

NAME = "my-chip"
"""The platform's name: what users write into JAX_PLATFORMS."""

PRIORITY = 400
"""Hosts choose the highest priority; their CPU has 0. One below 0 is used only if it is named."""
