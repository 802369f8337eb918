"""Operators that are publishers of their own: the loops before and after them are separate."""
