"""One JSON object is the truth of a run; the other reports are drawn from it."""
