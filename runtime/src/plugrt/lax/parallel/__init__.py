"""Collectives over mapped axes."""
