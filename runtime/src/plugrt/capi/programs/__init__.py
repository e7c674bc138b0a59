"""Executables of a library, and their launches."""
