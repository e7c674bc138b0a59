"""Buffers: puts, reads, copies, DLPack, and donation."""
