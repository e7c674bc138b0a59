"""The PJRT C ABI: declarations, what is generated of them, and values across the boundary."""
