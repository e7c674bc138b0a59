"""The checks of a library's function table, below plugrt's client."""
