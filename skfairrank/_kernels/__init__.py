"""Compiled loops over flat arrays of queries that differ in size. They are private, and each has its readable twin in tests/."""
