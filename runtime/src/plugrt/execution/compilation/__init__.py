"""Compilation of programs, the persistent cache, and programs that move data."""
