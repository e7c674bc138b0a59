"""Collectives over the mapped axes of `pmap`."""
