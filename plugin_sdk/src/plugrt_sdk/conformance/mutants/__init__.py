"""`faults.Faults`: makes a plugin with one defect, to test a check.

The kit's own mutants are in ``tests/mutants`` of the repository.
"""
