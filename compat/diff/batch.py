"""Batches for Produce, right ones and wrong ones, in few words."""
import time

from both import messages  # noqa: F401  (sets the path)
import batches


def record(delta, value, key=None, headers=()):
    return batches.record(delta, 0, key, value, headers)


def batch(values=(b'v',), keys=None, timestamp=None, records=None, **f):
    """records: bytes in place of those of values. f: codec, attributes, producer, and fields of the
    batch's head in place of the right ones."""
    timestamp = int(time.time() * 1000) if timestamp is None else timestamp
    if records is None:
        made = [(timestamp, k, v) for k, v in zip(keys or [None] * len(values), values)]
    else:
        made = [records]
        f = {'count': len(values), 'last_delta': len(values) - 1, 'base_timestamp': timestamp,
             'max_timestamp': timestamp, **f}
    return batches.build(made, **f)
