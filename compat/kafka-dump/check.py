#!/usr/bin/env python3
"""compat/kafka-dump/check.py DIR DUMP ERRORS: DUMP and ERRORS are what Apache Kafka's DumpLogSegments said
of the files of the log directory DIR. Every line must be one that it writes about sound files, and what
it tells must fit together: batches without a gap from the file's name to its last byte, as many
records as they say. Prints the records of each topic that is not internal, "TOPIC N"."""

import collections
import os
import re
import sys

MANY = 10

BATCH = re.compile(
    r"baseOffset: (?P<base>\d+) lastOffset: (?P<last>\d+) count: (?P<count>\d+) baseSequence: -?\d+ "
    r"lastSequence: -?\d+ producerId: -?\d+ producerEpoch: -?\d+ partitionLeaderEpoch: \d+ "
    r"isTransactional: (true|false) isControl: (?P<control>true|false) deleteHorizonMs: (\S+) "
    r"position: (?P<position>\d+) (CreateTime|LogAppendTime): \d+ size: (?P<size>\d+) magic: 2 "
    r"compresscodec: (none|gzip|snappy|lz4|zstd) crc: \d+ isvalid: true$"
)
RECORD = re.compile(r"\| offset: (?P<offset>\d+) (CreateTime|LogAppendTime): \d+ keySize: -?\d+ valueSize: -?\d+ (?P<rest>.*)$")
CONTROL = r"(LeaderChange:|SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters|endTxnMarker:) ?\S.*"
METADATA = re.compile(r'sequence: -1 headerKeys: \[\] (payload: \{"type":"[A-Z_]+","version":\d+,"data":\{.*\}\}|%s)$' % CONTROL)
LINES = {
    ".log": [re.compile(r"Log starting offset: \d+$")],
    ".checkpoint": [re.compile(r"Snapshot end offset: \d+, epoch: \d+$")],
    ".index": [re.compile(r"offset: \d+ position: \d+$"), re.compile(r"\S+ is empty\.$")],
    ".timeindex": [re.compile(r"timestamp: \d+ offset: \d+$")],
    ".txnindex": [re.compile(r"version: 0 producerId: \d+ firstOffset: \d+ lastOffset: \d+ lastStableOffset: \d+$")],
    ".snapshot": [re.compile(r"producerId: \d+ producerEpoch: \d+ coordinatorEpoch: -?\d+ .* lastTimestamp: \d+ *(firstSequence: .*)?$")],
}  # fmt: skip
SANITY = re.compile(r"\S+ passed sanity check\.$")


class Checker:
    def __init__(self, root):
        self.root = root
        self.faults = []
        self.path = self.suffix = None
        self.next_offset = self.next_position = self.left = 0
        self.control = False
        self.ends = {}  # partition -> the offset at which its next segment must begin
        self.records = collections.Counter()
        self.files = collections.Counter()

    def fault(self, text):
        self.faults.append("%s: %s" % (self.path, text))

    def partition(self):
        return os.path.basename(os.path.dirname(self.path))

    def begin(self, path):
        self.finish()
        self.path, self.suffix = path, os.path.splitext(path)[1]
        self.files[self.suffix] += 1
        name = os.path.basename(path)
        self.next_offset = int(name.split(".")[0]) if self.suffix == ".log" else 0
        self.next_position = self.left = 0
        before = self.ends.get(self.partition())
        if self.suffix == ".log" and before is not None and before != self.next_offset:
            self.fault("the segment before ends at %d" % before)

    def finish(self):
        if self.suffix not in (".log", ".checkpoint"):
            return
        size = os.path.getsize(os.path.join(self.root, self.path))
        if self.next_position != size:
            self.fault("%d bytes of %d are batches" % (self.next_position, size))
        if self.left:
            self.fault("the last batch lacks %d records" % self.left)
        if self.suffix == ".log":
            self.ends[self.partition()] = self.next_offset

    def batch(self, m):
        base, last, count, position = (int(m[k]) for k in ("base", "last", "count", "position"))
        if self.left:
            self.fault("the batch before %d lacks %d records" % (base, self.left))
        if base != self.next_offset or position != self.next_position or count != last - base + 1:
            self.fault("batch of %d at offset %d, position %d; to come was %d, %d" % (count, base, position, self.next_offset, self.next_position))
        self.control = m["control"] == "true"
        self.next_offset, self.next_position, self.left = last + 1, position + int(m["size"]), count

    def record(self, m):
        if int(m["offset"]) != self.next_offset - self.left:
            self.fault("record at offset %s, not %d" % (m["offset"], self.next_offset - self.left))
        self.left -= 1
        topic = self.partition().rsplit("-", 1)[0]
        if topic == "__cluster_metadata" and not METADATA.match(m["rest"]):
            self.fault(m["rest"])
        if not topic.startswith("__") and not self.control:
            self.records[topic] += 1

    def line(self, line):
        if line.startswith("Dumping "):
            return self.begin(line[len("Dumping ") :])
        if self.suffix in (".log", ".checkpoint"):
            m = RECORD.match(line)
            if m:
                return self.record(m)
            m = BATCH.match(line)
            if m:
                return self.batch(m)
        if not any(form.match(line) for form in LINES.get(self.suffix, []) + [SANITY]):
            self.fault(line)

    def errors(self, lines):
        """The tool begins to count at -1 in every file and so says of each segment but the first, those of
        Apache Kafka too, that its first offset does not follow."""
        base = None
        for line in lines:
            m = re.match(r"Non-consecutive offsets in .*/0*(\d+)\.log$", line)
            if m:
                base = m[1]
            elif base is None or line != "  -1 is followed by %s" % base:
                self.fault(line)


def main():
    checker = Checker(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8", errors="replace") as f:
        for line in f:
            checker.line(line.rstrip("\n"))
    checker.finish()
    with open(sys.argv[3], encoding="utf-8", errors="replace") as f:
        checker.errors(line.rstrip("\n") for line in f)
    for topic in sorted(checker.records):
        print(topic, checker.records[topic])
    print(*("%s: %d" % item for item in sorted(checker.files.items())), file=sys.stderr)
    for text in checker.faults[:MANY]:
        print(text, file=sys.stderr)
    if checker.faults:
        print("%d faults" % len(checker.faults), file=sys.stderr)
    return 1 if checker.faults or not checker.files else 0


sys.exit(main())
