"""Utilities for all packages: files, caches, host arrays, DLPack's types."""
