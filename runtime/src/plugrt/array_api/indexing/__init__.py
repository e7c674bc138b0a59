"""Indexing: keys, reads, writes and ``x.at[...]``."""
