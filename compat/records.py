#!/usr/bin/env python3
"""compat/records.py FIRST FILE [--again] [--resumed] OUT...: the records in the OUTs (lines of partition,
offset, key, value) are the lines of FILE, whose keys are FIRST and up: nothing is missing, nothing
else is there, each partition is without a gap, begins at 0 (--resumed: anywhere), and is in the order
of the keys. A record may come again, the same, with --again only. Prints what came and a checksum."""

import hashlib
import sys

MANY = 5


class Records:
    def __init__(self, first, lines, again):
        self.first = first
        self.lines = lines
        self.again = again
        self.partitions = {}  # number -> {offset: key}
        self.repeated = 0
        self.faults = []

    def fault(self, text):
        self.faults.append(text)

    def add(self, name, line):
        try:
            partition, offset, key, value = line.split(b"\t", 3)
            partition, offset, key = int(partition), int(offset), int(key)
        except ValueError:
            return self.fault("%s: not a record: %r" % (name, line[:80]))
        at = "partition %d, offset %d, key %d" % (partition, offset, key)
        if not 0 <= key - self.first < len(self.lines):
            return self.fault("%s was not sent" % at)
        if value != self.lines[key - self.first]:
            return self.fault("%s: %r, sent was %r" % (at, value[:40], self.lines[key - self.first][:40]))
        there = self.partitions.setdefault(partition, {})
        if offset in there:
            self.repeated += 1
            if not self.again or there[offset] != key:
                self.fault("%s came again" % at)
        there[offset] = key

    def check_order(self, resumed):
        for partition, there in sorted(self.partitions.items()):
            offsets = sorted(there)
            if offsets[0] != 0 and not resumed:
                self.fault("partition %d begins at offset %d" % (partition, offsets[0]))
            for a, b in zip(offsets, offsets[1:]):
                if b != a + 1:
                    self.fault("partition %d has nothing from %d to %d" % (partition, a + 1, b - 1))
                if there[b] <= there[a]:
                    self.fault("partition %d: key %d at offset %d behind key %d" % (partition, there[b], b, there[a]))

    def check_all(self):
        """The checksum of the values that came, by their keys."""
        keys = sorted(k for there in self.partitions.values() for k in there.values())
        if len(keys) != len(self.lines):
            self.fault("%d records of %d" % (len(keys), len(self.lines)))
        h = hashlib.sha256()
        for a, b in zip(keys, keys[1:]):
            if a == b:
                self.fault("key %d has two offsets" % a)
        for key in keys:
            h.update(self.lines[key - self.first] + b"\n")
        return h.hexdigest()


def main(words):
    options = [w for w in words if w.startswith("--")]
    first, path, *outs = [w for w in words if not w.startswith("--")]
    with open(path, "rb") as f:
        data = f.read()
    records = Records(int(first), data.split(b"\n")[:-1], "--again" in options)
    for out in outs:
        with open(out, "rb") as f:
            for line in f:
                records.add(out, line.rstrip(b"\n"))
    records.check_order("--resumed" in options)
    total = records.check_all()
    if not records.faults and total != hashlib.sha256(data).hexdigest():
        records.fault("checksum %s" % total)
    for text in records.faults[:MANY]:
        print(text)
    print(
        "%d faults; %d records in %d partitions, %d again, sha256 %s"
        % (len(records.faults), sum(map(len, records.partitions.values())), len(records.partitions), records.repeated, total)
    )
    return 1 if records.faults else 0


sys.exit(main(sys.argv[1:]))
