"""Operators and sources that wait, or that look at the clock."""
