"""Between Python items, Arrow batches and Spark schemas."""
