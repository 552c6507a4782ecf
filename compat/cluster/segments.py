"""A replica's log as its files say, without the broker: batches as bytes, records of batches."""

import collections
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "integration"))
import batches as format_of  # noqa: E402

Batch = collections.namedtuple("Batch", "base last data")
LENGTH_END = 12  # of a batch: offset and length


class Damaged(Exception):
    """What is there is no log."""


def batches(directory):
    """Of all segments, in their order, without a gap from the first to the last byte."""
    if not os.path.isdir(directory):
        raise Damaged("it is not there")
    names = sorted(n for n in os.listdir(directory) if n.endswith(".log"))
    if not names:
        raise Damaged("it has no segment")
    next_offset = int(names[0][:-4])
    for name in names:
        if int(name[:-4]) != next_offset:
            raise Damaged("segment %s follows offset %d" % (name, next_offset - 1))
        with open(os.path.join(directory, name), "rb") as f:
            data = f.read()
        at = 0
        while at < len(data):
            if len(data) - at < format_of.HEAD.size:
                raise Damaged("%s: %d bytes behind the last batch" % (name, len(data) - at))
            head = format_of.HEAD.unpack_from(data, at)
            base, size, last = head[0], LENGTH_END + head[1], head[0] + head[6]
            if base != next_offset or head[3] != 2 or last < base or size > len(data) - at or size < format_of.HEAD.size:
                raise Damaged("%s: no batch of offset %d at position %d" % (name, next_offset, at))
            yield Batch(base, last, data[at : at + size])
            next_offset, at = last + 1, at + size


def producer(batch):
    """(id, epoch, first sequence, number of records)"""
    head = format_of.Batch(*format_of.HEAD.unpack_from(batch.data), None, batch.data)
    return head.producer_id, head.producer_epoch, head.sequence, head.count


def records(batch):
    """(offset, key, value) of each; a control batch has none."""
    b = format_of.Batch(*format_of.HEAD.unpack_from(batch.data), None, batch.data)
    if b.crc != format_of.crc32c(batch.data[21:]):
        raise Damaged("the batch at offset %d has another CRC" % batch.base)
    if b.attributes & format_of.CONTROL:
        return []
    body = format_of.decompress(format_of.CODECS[b.attributes & 7], batch.data[format_of.HEAD.size :])
    return [(r.offset, r.key, r.value) for r in format_of.read_records(b, body)]
