"""From a Python function to a StableHLO module: tracers, traces, and the functions made of them."""
