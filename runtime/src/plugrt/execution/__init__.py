"""Arrays and launches: shardings, `Array`, transfers, and compiled programs that run on arrays."""
