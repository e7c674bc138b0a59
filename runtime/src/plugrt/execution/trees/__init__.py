"""Pytrees: nested containers of arrays, and the leaves of a call."""
