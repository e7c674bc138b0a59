"""Libraries and backends with one defect each, by seed, which measure the conformance kit."""
