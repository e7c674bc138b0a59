"""plugrt: a host runtime for any device that has a PJRT plugin."""
