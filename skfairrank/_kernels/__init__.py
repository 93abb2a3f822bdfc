"""Compiled loops over flat ragged arrays. Private; each has its readable twin in tests/."""
