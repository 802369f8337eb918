"""Operators that work on many items at a time: by coroutines of a loop, or on threads."""
