"""What becomes of items that nobody has requested, and how requests are dealt out.

To request at most so many items of a source in all, there is ``Flow.take``: ``take(n)`` never
requests more than `n`, and completes after them. That is what others call ``limit_request``.
"""
