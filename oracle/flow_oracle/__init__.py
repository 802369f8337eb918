"""Random pipelines, run by this library and by RxJava 3, and what both did compared."""
