"""Tracing of Python functions to StableHLO modules: tracers, traces and operations."""
