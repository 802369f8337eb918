"""Operators for the micro-batches of a stream: each function in a file of its name."""
