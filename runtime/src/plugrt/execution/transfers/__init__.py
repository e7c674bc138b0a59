"""Transfers: `device_put`, `device_get`, resharding, and data of several processes."""
