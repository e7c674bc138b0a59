"""Reports of a run: a JSON object, and the formats that are made from it."""
