"""The operations of StableHLO on NumPy arrays, a module each for a kind of them."""
