"""Runs untrusted code in child processes, which never outlive the caller."""
