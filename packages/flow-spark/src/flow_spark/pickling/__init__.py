"""Pickling of functions and items for tasks and back, with its errors."""
