"""A package that adds to flows what its authors need.

It imports nothing, so that `flow plugins` lists it without importing its modules.
"""
