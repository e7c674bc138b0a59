"""Elementwise functions of the array API standard."""
