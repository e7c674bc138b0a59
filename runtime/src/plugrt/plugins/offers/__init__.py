"""Objects that installed packages add to plugrt through hooks."""
