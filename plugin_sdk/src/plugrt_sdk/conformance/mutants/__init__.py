"""How a plugin with one defect is made, to test a check on: `faults.Faults`.

The kit's own mutants are in ``tests/mutants`` of the repository, one for each check.
"""
