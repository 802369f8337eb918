"""How items get from tasks to the driver: authenticated, demand-driven, exact under retries."""
