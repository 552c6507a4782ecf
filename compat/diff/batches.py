"""Record batches v2, right ones and wrong ones."""
import gzip
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tests',
                                'integration'))
from kafka import crc32c, varint  # noqa: E402


def record(delta, value, key=None, headers=(), timestamp_delta=0):
    body = b'\0' + varint(timestamp_delta) + varint(delta)
    for part in (key, value):
        body += varint(-1 if part is None else len(part)) + (part or b'')
    body += varint(len(headers))
    for name, v in headers:
        body += varint(len(name)) + name + varint(-1 if v is None else len(v)) + (v or b'')
    return varint(len(body)) + body


def batch(values=(b'v',), keys=None, attributes=0, timestamp=None, producer=(-1, -1, -1), base_offset=0,
          count=None, last_delta=None, records=None, magic=2, crc=None, length=None, epoch=-1,
          max_timestamp=None):
    """attributes 1: gzip. records, count, last_delta, crc, length: instead of what would be right."""
    timestamp = int(time.time() * 1000) if timestamp is None else timestamp
    keys = keys or [None] * len(values)
    if records is None:
        records = b''.join(record(i, v, k) for i, (v, k) in enumerate(zip(values, keys)))
    if attributes & 7 == 1:
        records = gzip.compress(records, mtime=0)
    n = len(values)
    body = struct.pack('>hiqqqhii', attributes, n - 1 if last_delta is None else last_delta, timestamp,
                       timestamp if max_timestamp is None else max_timestamp, *producer,
                       n if count is None else count) + records
    head = struct.pack('>ibI', epoch, magic, crc32c(body) if crc is None else crc)
    size = len(head) + len(body) if length is None else length
    return struct.pack('>qi', base_offset, size) + head + body
