"""Loads StableHLO files and JAX exports, compiles them, and calls them on arrays.

Also works without jaxlib: a program is then passed to the backend unchanged, and the backend's
parser checks it.
"""
