"""Control flow: loops, scans and conditionals, traced and eager."""
