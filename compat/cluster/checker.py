"""What must be true of the files of all replicas and of what the clients noted, when all is over:

- the replicas of a partition are one log, byte for byte, without a gap, from offset 0;
- each acknowledged record is at its offset, and the log holds nothing that was not sent;
- of each epoch of a producer all sequence numbers are there, once, in order, from 0;
- of each key the records are there once, in the order sent, none left out (unsure.py has which producers' may differ);
- what was consumed is at its offset; each group has consumed everything;
- the metadata logs are one log, up to the high watermark, wherever two nodes have the same offsets."""

import array
import collections
import itertools
import os

import segments
from unsure import Unsure, number_of

MANY = 20


class Checker:
    """replicas: the log directories, one per node. unsure: as Unsure takes it. faults: what is wrong, in words."""

    def __init__(self, replicas, topic, unsure=None):
        self.replicas, self.topic, self.unsure = replicas, topic, Unsure(unsure or {})
        self.faults = []
        self.fault_n = 0
        self.logs = {}  # partition -> the hashes of (key, value) by offset
        self.counters = {}  # key -> (partition, number of its records)
        self.producers = {}  # (partition, producer id) -> (epoch, next sequence)
        self.n = collections.Counter()

    def fault(self, text):
        self.fault_n += 1
        if len(self.faults) < MANY:
            self.faults.append(text)

    # ------------------------------------------------------------------ files

    def check_logs(self, partitions):
        for partition in range(partitions):
            self.logs[partition] = array.array("q")
            self.check_partition(partition)

    def check_partition(self, partition):
        name = "%s-%d" % (self.topic, partition)
        logs = [self.replica(os.path.join(r, name), "%s of %s" % (name, r)) for r in self.replicas]
        for same in itertools.zip_longest(*logs):
            if len(set(same)) != 1:
                return self.fault("%s: the replicas differ at offset %s" % (name, min(b.base for b in same if b is not None)))
            try:
                producer_epoch = self.take_producer(partition, same[0])
                self.take(partition, segments.records(same[0]), producer_epoch)
            except (segments.Damaged, AssertionError, ValueError) as e:
                return self.fault("%s: %s" % (name, e))
            self.n["batches"] += 1
        return None

    def replica(self, directory, name):
        """What cannot be read is a fault, and ends it."""
        first = True
        try:
            for batch in segments.batches(directory):
                if first and batch.base != 0:
                    self.fault("%s begins at offset %d" % (name, batch.base))
                first = False
                yield batch
        except segments.Damaged as e:
            self.fault("%s: %s" % (name, e))

    def take_producer(self, partition, batch):
        """Its epoch; none is that of other batches."""
        producer, epoch, sequence, n = segments.producer(batch)
        if producer < 0:
            return None
        last, due = self.producers.get((partition, producer), (epoch, 0))
        if epoch < last or sequence != (due if epoch == last else 0):
            text = "%s-%d: at offset %d producer %d writes %d of epoch %d, after epoch %d, where %d was due"
            self.fault(text % (self.topic, partition, batch.base, producer, sequence, epoch, last, due))
        self.producers[partition, producer] = epoch, sequence + n
        return epoch

    def take(self, partition, records, producer_epoch):
        log = self.logs[partition]
        for offset, key, value in records:
            if offset != len(log):
                self.fault("%s-%d: a record at offset %d, not %d" % (self.topic, partition, offset, len(log)))
            log.append(hash((key, value)))
            at, n = self.counters.get(key, (partition, 0))
            if at != partition:
                self.fault("%s is in partitions %d and %d" % (key, at, partition))
            number = number_of(value)
            due = self.unsure.take(key, number, n, producer_epoch, (partition, offset))
            if number != due:
                self.fault("%s-%d: at offset %d is %s %s, not number %d" % (self.topic, partition, offset, key, value[:20], due))
            self.counters[key] = (partition, max(n, due + 1))

    def check_metadata(self, high_watermark):
        """Snapshots take the place of what is old, on each node at another time."""
        seen = {}
        for r in self.replicas:
            directory = os.path.join(r, "__cluster_metadata-0")
            try:
                for batch in segments.batches(directory):
                    if batch.last < high_watermark and seen.setdefault(batch.base, batch) != batch:
                        self.fault("%s differs from others at offset %d" % (directory, batch.base))
                    self.n["metadata batches"] += 1
            except segments.Damaged as e:
                self.fault("%s: %s" % (directory, e))

    # ------------------------------------------------------------------ histories

    def history(self, path):
        """(partition, offset, key, value) of each line, which must be whole."""
        with open(path, "rb") as f:
            for line in f:
                try:
                    partition, offset, key, value = line.split(b"\t", 3)
                    if not value.endswith(b"\n"):
                        raise ValueError
                    yield int(partition), int(offset), key, value[:-1]
                except ValueError:
                    self.fault("%s: not a record: %r" % (path, line[:60]))

    def there(self, what, partition, offset, key, value):
        log = self.logs.get(partition, ())
        if not 0 <= offset < len(log):
            self.fault("%s: %s %s at %d-%d: the log ends at %d" % (what, key, value[:20], partition, offset, len(log)))
            return False
        if log[offset] != hash((key, value)):
            self.fault("%s: %s %s at %d-%d: another record is there" % (what, key, value[:20], partition, offset))
            return False
        return True

    def check_acknowledged(self, paths):
        """Every producer had an answer for all it sent, or gave it up: so the log holds these and no others."""
        seen = {p: bytearray(len(log)) for p, log in self.logs.items()}
        for path in paths:
            for record in self.history(path):
                self.n["acknowledged"] += 1
                if self.there("acknowledged", *record):
                    if seen[record[0]][record[1]]:
                        self.fault("acknowledged twice at %d-%d" % record[:2])
                    seen[record[0]][record[1]] = 1
        self.check_unsure(seen)
        self.complete("never acknowledged", seen)
        if not self.n["acknowledged"]:
            self.fault("nothing was acknowledged")

    def check_unsure(self, seen):
        """One copy of each was acknowledged, none of what was given up; all copies are the same."""
        for (key, number), places in self.unsure.places.items():
            acknowledged = sum(seen[p][offset] for p, offset in places)
            if acknowledged != (number not in self.unsure.given_up[key]):
                self.fault("%s number %d: %d copies of those at %s were acknowledged" % (key, number, acknowledged, places))
            if len({self.logs[p][offset] for p, offset in places}) != 1:
                self.fault("%s number %d: the copies at %s differ" % (key, number, places))
            for p, offset in places:
                seen[p][offset] = 1
        self.n.update(self.unsure.counts())

    def check_consumed(self, group, paths):
        seen = {p: bytearray(len(log)) for p, log in self.logs.items()}
        for path in paths:
            for record in self.history(path):
                self.n["consumed"] += 1
                if self.there("consumed by " + group, *record):
                    seen[record[0]][record[1]] = 1
        self.complete("never consumed by " + group, seen)

    def complete(self, what, seen):
        for partition, marks in seen.items():
            missing = marks.count(0)
            if missing:
                self.fault("%s: %d of partition %d, first offset %d" % (what, missing, partition, marks.index(0)))
