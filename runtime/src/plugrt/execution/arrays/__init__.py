"""`Array`: its contents, methods and conversions, and the avals of arguments."""
