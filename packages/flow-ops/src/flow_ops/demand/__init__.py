"""Operators for items that were not requested, and for the way in which requests are made.

To limit the items that are requested of a source in all, use ``Flow.take``: ``take(n)`` never
requests more than `n`, and completes after `n` items. Other libraries call that ``limit_request``.
"""
