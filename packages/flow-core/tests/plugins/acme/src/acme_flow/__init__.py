"""A package that adds to flows what its authors need."""
