"""The devices, shardings, layouts and memories of a launch."""
