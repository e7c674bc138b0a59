"""Where a program runs: devices, shardings, layouts and memories of a launch."""
