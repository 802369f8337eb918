"""Operators that move a flow to other threads."""
