"""Write, export and check PJRT plugins in Python."""
