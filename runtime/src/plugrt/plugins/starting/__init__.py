"""Imports a candidate's plugin, tries its library and creates its client."""
