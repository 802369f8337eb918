"""A function for many items at a time: coroutines of a loop, or threads."""
