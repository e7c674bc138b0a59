"""Signals, exits and forks: blocks, imports, threads and exceptions that they must not break."""
