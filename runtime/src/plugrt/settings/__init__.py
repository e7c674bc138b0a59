"""Settings: how they are declared, read and changed for a block of code."""
