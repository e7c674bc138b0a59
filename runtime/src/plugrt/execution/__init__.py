"""`Array`, shardings, transfers, and the launch of compiled programs on arrays."""
