"""Selects the platforms that the settings request, and starts their clients."""
