"""The conformance kit: what a PJRT plugin must do, tried in processes that may crash."""
