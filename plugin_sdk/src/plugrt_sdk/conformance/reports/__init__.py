"""Reports of a run: a JSON object, and formats that are made from it."""
