"""Installed packages: their metadata, and descriptions of plugins from their files."""
