"""Flow operators that cross threads, time or several sources.

Each is an argument of `flow_core.Flow.pipe`:

>>> from concurrent.futures import ThreadPoolExecutor
>>> import flow_core as flow
>>> from flow_ops import observe_on
>>> with ThreadPoolExecutor(1) as pool:
...     print(list(flow.range(3).map(str).pipe(observe_on(pool))))
['0', '1', '2']
"""

from flow_ops.combine.merge import merge
from flow_ops.combine.until import skip_until, take_until
from flow_ops.threads.observe_on import observe_on
from flow_ops.transform.concat_map import concat_map

__all__ = ["concat_map", "merge", "observe_on", "skip_until", "take_until"]
