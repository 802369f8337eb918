"""`parallel`: the items of a flow, dealt out to rails that run at the same time."""
