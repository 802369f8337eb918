"""The official kit of Reactive Streams, run against this library's objects."""
