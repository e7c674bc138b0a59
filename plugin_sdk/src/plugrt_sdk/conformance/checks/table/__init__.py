"""Checks of a library's function table, without plugrt's client."""
