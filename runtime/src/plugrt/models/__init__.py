"""Models: programs, weights and a signature in one folder or zip file, packed and called."""
