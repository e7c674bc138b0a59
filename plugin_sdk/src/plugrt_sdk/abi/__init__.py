"""Versions of the PJRT C API: headers read, and compared with each other and with plugrt's own."""
