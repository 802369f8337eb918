"""What is pickled on its way to tasks and back, and what to say when it cannot be."""
