"""Loaded executables with ordered, bounded or awaited launches, and custom calls."""
