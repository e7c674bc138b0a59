"""`Client` and `Topology` of a library: how they are created, and how they end."""
