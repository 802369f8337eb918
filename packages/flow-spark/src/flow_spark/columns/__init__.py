"""Operators that stay in Spark's own engine: each in a file of its name."""
