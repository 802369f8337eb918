"""Operators that make a flow of each item."""
