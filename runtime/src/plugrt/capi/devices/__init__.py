"""Devices and memories of a library, and its capabilities."""
