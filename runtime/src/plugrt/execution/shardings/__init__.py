"""Shardings, meshes and partition specs: how arrays are divided over devices."""
