"""Trials of a library in a child process."""
