"""Utilities without a subject of their own: files, caches, host arrays, DLPack's types."""
