"""Bessel, incomplete beta and incomplete gamma functions."""
