"""The channel of items from tasks to the driver: authenticated, on demand, exact under retries."""
