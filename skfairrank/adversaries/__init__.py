"""Adversaries: where the hypothetical queries of Algorithm 1 come from."""
