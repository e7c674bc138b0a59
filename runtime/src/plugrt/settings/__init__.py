"""Settings: their declarations, how they are read, and context managers that change them."""
