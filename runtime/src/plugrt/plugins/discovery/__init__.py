"""Finds candidates in metadata and in the environment, without running their code."""
