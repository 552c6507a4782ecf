"""What the programs in Python have in common: the calls of compat/README.md, lines, records, and what a
member tells."""

import os
import sys
import time

TIMEOUT = 60  # seconds
POLL = 0.1
BUFFER = 1 << 20


def lines(path):
    with open(path, "rb") as f:
        return f.read().split(b"\n")[:-1]


class Delivered:
    """What the broker acknowledged: per partition at offsets that rise by one."""

    def __init__(self):
        self.next = {}
        self.n = 0
        self.fault = None

    def take(self, partition, offset):
        expected = self.next.get(partition, offset)
        if offset != expected:
            self.fail("offset %d was to be %d" % (offset, expected))
        self.next[partition] = offset + 1
        self.n += 1

    def fail(self, why):
        self.fault = self.fault or why

    def tell(self, sent):
        if self.fault:
            raise RuntimeError(self.fault)
        if self.n != sent:
            raise RuntimeError("%d of %d were delivered" % (self.n, sent))
        print("produced", sent)


class Out:
    """The file of records."""

    def __init__(self, path):
        self.file = open(path, "wb", BUFFER)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, partition, offset, key, value):
        self.file.write(b"%d\t%d\t%b\t%b\n" % (partition, offset, key, value))

    def flush(self):
        self.file.flush()


class Reading:
    """Partitions that are read to their ends: next offsets, and when to give up."""

    def __init__(self, begins, ends):
        self.ends = ends
        self.next = dict(begins)
        self.n = 0
        self.deadline = time.monotonic() + TIMEOUT

    def goes_on(self):
        behind = [p for p, end in self.ends.items() if self.next[p] < end]
        if behind and time.monotonic() > self.deadline:
            raise TimeoutError("partitions %s have no more records" % behind)
        return bool(behind)

    def take(self, partition, offset):
        self.next[partition] = offset + 1
        self.n += 1
        self.deadline = time.monotonic() + TIMEOUT

    def tell(self):
        print("consumed", self.n)


class Assignment:
    """The partitions that a member has; each change is told."""

    def __init__(self):
        self.has = set()

    def add(self, partitions):
        self.has.update(partitions)
        self.tell()

    def remove(self, partitions):
        self.has.difference_update(partitions)
        self.tell()

    def tell(self):
        print("assigned", *sorted(self.has), flush=True)


def tell_committed(offsets):
    for partition, offset in sorted(offsets.items()):
        print("committed", partition, offset, flush=True)


def tell_offsets(offsets):
    for partition, offset in sorted(offsets.items()):
        print(partition, offset)


def is_there(path):
    return os.path.exists(path)


def main(*calls):
    """The call named by the first word, with the others."""
    {f.__name__: f for f in calls}[sys.argv[1]](*sys.argv[2:])
