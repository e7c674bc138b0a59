"""Threads, imports and interpreters: work that signals and exits must not break."""
