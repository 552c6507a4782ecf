#!/usr/bin/env python3
"""The checker sees what is wrong: a small sound history and its logs, then one thing changed at a time."""

import os
import shutil
import struct
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import segments  # noqa: E402, first: it knows where the format is
from checker import Checker  # noqa: E402
from segments import format_of  # noqa: E402

TOPIC, PARTITIONS, NODES, SEGMENT = "t", 2, 3, 3
KEYS = {0: (b"a", b"b"), 1: (b"c",)}  # by partition
ROUNDS = 12


def record_line(partition, offset, key, value):
    return b"%d\t%d\t%s\t%s\n" % (partition, offset, key, value)


class Small(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="dohle-checker-")
        self.addCleanup(shutil.rmtree, self.directory)
        # Per partition a list of batches, each a list of (key, value).
        self.logs = {
            p: [[(k, b"%d:%s" % (n, b"x" * n)) for k in keys for n in (2 * i, 2 * i + 1)] for i in range(ROUNDS // 2)]
            for p, keys in KEYS.items()
        }
        self.metadata = [[(None, b"record %d" % n)] for n in range(6)]
        for node in range(NODES):
            for p, log in self.logs.items():
                self.write_log(node, "%s-%d" % (TOPIC, p), log, "gzip" if p else "none")
            self.write_log(node, "__cluster_metadata-0", self.metadata)
        self.acknowledged = [
            record_line(p, offset, key, value)
            for p, log in self.logs.items()
            for offset, (key, value) in enumerate(r for batch in log for r in batch)
        ]
        self.consumed = list(self.acknowledged)
        self.given_up = None  # lines; then its producer is unsure

    def partition(self, node, name):
        return os.path.join(self.directory, str(node), name)

    def segment(self, node, p=0, n=0):
        directory = self.partition(node, "%s-%d" % (TOPIC, p))
        return os.path.join(directory, sorted(os.listdir(directory))[n])

    def write_log(self, node, name, log, codec="none"):
        directory = self.partition(node, name)
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        offset = 0
        for at in range(0, len(log), SEGMENT):
            base, data = offset, b""
            for batch in log[at : at + SEGMENT]:
                data += format_of.build([(1000 + offset, k, v) for k, v in batch], codec, base=offset, leader_epoch=at)
                offset += len(batch)
            with open(os.path.join(directory, "%020d.log" % base), "wb") as f:
                f.write(data)

    def write_on_all(self, p, log):
        for node in range(NODES):
            self.write_log(node, "%s-%d" % (TOPIC, p), log, "gzip" if p else "none")

    def write(self, name, lines):
        path = os.path.join(self.directory, name)
        with open(path, "wb") as f:
            f.writelines(lines)
        return path

    def faults(self, high_watermark=6):
        replicas = [os.path.join(self.directory, str(node)) for node in range(NODES)]
        unsure = {} if self.given_up is None else {key: self.write("given-up", self.given_up) for key in (b"a", b"b", b"c")}
        c = Checker(replicas, TOPIC, unsure)
        c.check_logs(PARTITIONS)
        c.check_metadata(high_watermark)
        c.check_acknowledged([self.write("acknowledged", self.acknowledged)])
        c.check_consumed("g", [self.write("consumed", self.consumed)])
        return c.faults

    def assert_seen(self, words):
        found = self.faults()
        self.assertTrue(any(words in f for f in found), found)

    def test_what_is_sound_is_found_sound(self):
        self.assertEqual(self.faults(), [])

    def test_a_record_may_be_consumed_again(self):
        self.consumed += self.consumed[3:7]
        self.assertEqual(self.faults(), [])

    # ------------------------------------------------------------------ logs

    def test_an_acknowledged_record_lost_on_all(self):
        self.logs[0].pop()
        self.write_on_all(0, self.logs[0])
        self.assert_seen("acknowledged: b'a'")
        self.assert_seen("consumed by g: b'a'")

    def test_an_acknowledged_record_lost_on_one(self):
        for node in range(NODES):
            with self.subTest(node=node):
                self.setUp()
                self.write_log(node, "t-0", self.logs[0][:-1])
                self.assert_seen("t-0: the replicas differ at offset 20")

    def test_a_replica_of_another_content(self):
        self.logs[0][2][1] = (b"a", b"5:other")
        self.write_log(2, "t-0", self.logs[0])
        self.assert_seen("t-0: the replicas differ at offset 8")

    def test_a_replica_with_other_leader_epochs(self):
        with open(self.segment(1), "r+b") as f:
            f.seek(12)
            f.write(struct.pack(">i", 9))
        self.assert_seen("t-0: the replicas differ at offset 0")

    def test_a_replica_of_other_batches(self):
        """The same records at the same offsets, put together another way."""
        first = self.logs[0]
        self.write_log(0, "t-0", [first[0] + first[1]] + first[2:])
        self.assert_seen("t-0: the replicas differ at offset 0")

    def test_other_segments_are_no_fault(self):
        directory = self.partition(0, "t-0")
        names = sorted(os.listdir(directory))
        data = b""
        for name in names:
            with open(os.path.join(directory, name), "rb") as f:
                data += f.read()
            os.unlink(os.path.join(directory, name))
        with open(os.path.join(directory, names[0]), "wb") as f:
            f.write(data)
        self.assertEqual(self.faults(), [])

    def test_one_that_is_not_there(self):
        shutil.rmtree(self.partition(1, "t-1"))
        self.assert_seen("it is not there")
        self.assert_seen("t-1: the replicas differ")

    def test_an_empty_one(self):
        for name in os.listdir(self.partition(1, "t-1")):
            os.unlink(os.path.join(self.partition(1, "t-1"), name))
        self.assert_seen("it has no segment")

    def test_a_segment_that_is_missing(self):
        os.unlink(self.segment(0, 0, 0))
        self.assert_seen("begins at offset 12")
        os.unlink(self.segment(1, 0, 1))
        self.assert_seen("t-0: the replicas differ")

    def test_a_gap_between_segments(self):
        for node in range(NODES):
            self.write_log(node, "t-0", self.logs[0] * 2)
            os.unlink(self.segment(node, 0, 1))
        self.assert_seen("follows offset 11")

    def test_a_torn_tail(self):
        with open(self.segment(2, 1, 1), "ab") as f:
            f.write(b"\0" * 7)
        self.assert_seen("7 bytes behind the last batch")

    def test_a_batch_at_another_offset(self):
        for node in range(NODES):
            with open(self.segment(node), "r+b") as f:
                f.write(struct.pack(">q", 1))
        self.assert_seen("no batch of offset 0")

    def test_a_damaged_batch_on_all(self):
        for node in range(NODES):
            with open(self.segment(node), "r+b") as f:
                f.seek(-1, os.SEEK_END)
                f.write(b"\1")
        self.assert_seen("another CRC")

    def test_a_record_that_is_there_twice(self):
        self.logs[0][3].append(self.logs[0][3][-1])
        self.write_on_all(0, self.logs[0])
        self.assert_seen("not number 8")

    def test_a_batch_that_counts_wrongly(self):
        """Both records say that they are the batch's first."""
        same = [format_of.record(0, 0, k, v) for k, v in self.logs[1][0][:2]]
        for node in range(NODES):
            directory = self.partition(node, "t-1")
            for name in os.listdir(directory):
                os.unlink(os.path.join(directory, name))
            with open(os.path.join(directory, "%020d.log" % 0), "wb") as f:
                f.write(format_of.build(same))
        self.assert_seen("t-1: a record at offset 0, not 1")

    def test_a_key_out_of_order(self):
        batch = self.logs[1][2]
        batch[0], batch[1] = batch[1], batch[0]
        self.write_on_all(1, self.logs[1])
        self.assert_seen("is b'c' b'5:xxxxx', not number 4")

    def test_a_record_left_out(self):
        del self.logs[0][1][1]
        self.write_on_all(0, self.logs[0])
        self.assert_seen("not number 3")

    def test_a_key_in_two_partitions(self):
        self.logs[1].append([(b"a", b"12:")])
        self.write_on_all(1, self.logs[1])
        self.assert_seen("b'a' is in partitions 0 and 1")

    def test_one_that_nobody_sent(self):
        self.logs[1].append([(b"d", b"0:")])
        self.write_on_all(1, self.logs[1])
        self.assert_seen("never acknowledged: 1 of partition 1, first offset 12")

    # ------------------------------------------------------------------ given up

    def test_given_up_and_there(self):
        self.given_up = [b"a\t2:xx\n", b"a\t3:xxx\n"]
        for line in self.acknowledged[4:6]:
            self.acknowledged.remove(line)
        self.assertEqual(self.faults(), [])

    def test_given_up_and_not_there(self):
        """Of b all of the end, of c one in the middle."""
        self.given_up = [b"b\t10:\n", b"b\t11:\n", b"c\t3:xxx\n"]
        self.logs[0][-1] = self.logs[0][-1][:2]
        del self.logs[1][1][1]
        for p in KEYS:
            self.write_on_all(p, self.logs[p])
        self.acknowledged = self.acknowledged[:22] + [
            record_line(1, offset, b"c", b"%d:%s" % (n, b"x" * n)) for offset, n in enumerate(n for n in range(12) if n != 3)
        ]
        self.consumed = list(self.acknowledged)
        self.assertEqual(self.faults(), [])

    def test_given_up_and_acknowledged(self):
        self.given_up = [b"a\t2:xx\n"]
        self.assert_seen("b'a' number 2: 1 copies of those at [(0, 4)] were acknowledged")

    def test_given_up_and_there_twice(self):
        self.given_up = [b"c\t3:xxx\n"]
        self.logs[1][1].append(self.logs[1][1][1])
        self.write_on_all(1, self.logs[1])
        self.assert_seen("not number 4")

    def test_given_up_and_there_too_late(self):
        self.given_up = [b"c\t3:xxx\n"]
        self.logs[1][2].append(self.logs[1][1].pop())
        self.write_on_all(1, self.logs[1])
        self.assert_seen("not number 6")

    def test_only_what_was_given_up_may_be_missing(self):
        self.given_up = [b"c\t2:xx\n"]
        del self.logs[1][1][1]
        self.write_on_all(1, self.logs[1])
        self.assert_seen("not number 3")

    def write_by_producer(self, *runs):
        """c's partition, on all: runs of (epoch, sequence, numbers), each a batch. All is acknowledged and consumed."""
        lines, offset = [], 0
        data = b""
        for epoch, sequence, numbers in runs:
            records = [(1000, b"c", b"%d:%s" % (n, b"x" * n)) for n in numbers]
            data += format_of.build(records, producer=(7, epoch, sequence), base=offset, leader_epoch=0)
            lines += [record_line(1, offset + i, b"c", value) for i, (_, _, value) in enumerate(records)]
            offset += len(records)
        for node in range(NODES):
            self.write_log(node, "t-1", [])
            with open(os.path.join(self.partition(node, "t-1"), "%020d.log" % 0), "wb") as f:
                f.write(data)
        self.consumed = [line for line in self.consumed if line.startswith(b"0")] + lines
        self.acknowledged = [line for line in self.acknowledged if line.startswith(b"0")] + lines

    def test_sequences_without_a_gap_are_sound(self):
        self.write_by_producer((0, 0, (0, 1)), (0, 2, (2,)), (3, 0, (3, 4)))
        self.assertEqual(self.faults(), [])

    def test_a_sequence_that_is_missing(self):
        self.write_by_producer((0, 0, (0, 1)), (0, 3, (2,)))
        self.assert_seen("producer 7 writes 3 of epoch 0, after epoch 0, where 2 was due")

    def test_a_sequence_that_is_there_twice(self):
        self.write_by_producer((0, 0, (0, 1)), (0, 1, (2,)))
        self.assert_seen("producer 7 writes 1 of epoch 0")

    def test_an_epoch_that_begins_late(self):
        self.write_by_producer((0, 0, (0, 1)), (1, 2, (2,)))
        self.assert_seen("producer 7 writes 2 of epoch 1, after epoch 0")

    def test_an_epoch_that_is_over(self):
        self.write_by_producer((1, 0, (0, 1)), (0, 0, (2,)))
        self.assert_seen("producer 7 writes 0 of epoch 0, after epoch 1")

    def again(self, epoch):
        """2 was given up, 3 written again and acknowledged there."""
        self.given_up = [b"c\t2:xx\n"]
        self.write_by_producer((0, 0, (0, 1, 2, 3)), (epoch, 4 if epoch == 0 else 0, (3, 4)))
        self.acknowledged = [line for line in self.acknowledged if not line.startswith((b"1\t2\t", b"1\t3\t"))]

    def test_written_again_in_a_new_epoch(self):
        self.again(1)
        self.assertEqual(self.faults(), [])

    def test_written_again_in_part(self):
        """What is not lost goes on behind all that was there."""
        self.given_up = [b"c\t1:x\n"]
        self.write_by_producer((0, 0, (0, 1, 2, 3)), (1, 0, (2, 4, 5)))
        self.acknowledged = [line for line in self.acknowledged if not line.startswith((b"1\t1\t", b"1\t2\t"))]
        self.assertEqual(self.faults(), [])

    def test_written_again_in_the_same_epoch(self):
        self.again(0)
        self.assert_seen("not number 4")

    def test_written_again_by_one_that_is_sure(self):
        self.again(1)
        self.given_up = None
        self.assert_seen("not number 4")

    def test_both_copies_acknowledged(self):
        self.again(1)
        self.acknowledged.append(record_line(1, 3, b"c", b"3:xxx"))
        self.assert_seen("b'c' number 3: 2 copies")

    def test_no_copy_acknowledged(self):
        self.again(1)
        self.acknowledged = [line for line in self.acknowledged if not line.startswith(b"1\t4\t")]
        self.assert_seen("b'c' number 3: 0 copies")

    # ------------------------------------------------------------------ metadata

    def test_metadata_that_differs(self):
        self.metadata[2] = [(None, b"another")]
        self.write_log(1, "__cluster_metadata-0", self.metadata)
        self.assert_seen("__cluster_metadata-0 differs from others at offset 2")

    def test_metadata_above_the_high_watermark_may_differ(self):
        self.metadata[5] = [(None, b"another")]
        self.write_log(1, "__cluster_metadata-0", self.metadata)
        self.assertEqual(self.faults(high_watermark=5), [])

    def test_metadata_that_begins_later_is_no_fault(self):
        directory = self.partition(1, "__cluster_metadata-0")
        os.unlink(os.path.join(directory, sorted(os.listdir(directory))[0]))
        self.assertEqual(self.faults(), [])

    # ------------------------------------------------------------------ histories

    def test_acknowledged_at_another_offset(self):
        self.acknowledged[4], self.acknowledged[5] = (
            self.acknowledged[4].replace(b"\t4\t", b"\t5\t"),
            self.acknowledged[5].replace(b"\t5\t", b"\t4\t"),
        )
        self.assert_seen("at 0-5: another record is there")

    def test_acknowledged_past_the_end(self):
        self.acknowledged.append(record_line(1, 12, b"c", b"12:"))
        self.assert_seen("at 1-12: the log ends at 12")

    def test_acknowledged_in_no_partition(self):
        self.acknowledged.append(record_line(7, 0, b"c", b"12:"))
        self.assert_seen("at 7-0: the log ends at 0")

    def test_acknowledged_twice(self):
        self.acknowledged.append(self.acknowledged[0])
        self.assert_seen("acknowledged twice at 0-0")

    def test_acknowledged_with_another_value(self):
        self.acknowledged[0] = record_line(0, 0, b"a", b"0:x")
        self.assert_seen("at 0-0: another record is there")

    def test_nothing_acknowledged(self):
        self.acknowledged = []
        self.assert_seen("nothing was acknowledged")

    def test_consumed_and_then_gone(self):
        self.consumed.append(record_line(1, 12, b"c", b"12:"))
        self.assert_seen("consumed by g: b'c' b'12:' at 1-12: the log ends at 12")

    def test_consumed_was_another(self):
        self.consumed.append(record_line(1, 3, b"c", b"4:xxxx"))
        self.assert_seen("consumed by g: b'c' b'4:xxxx' at 1-3: another record is there")

    def test_not_consumed(self):
        del self.consumed[-2]
        self.assert_seen("never consumed by g: 1 of partition 1, first offset 10")

    def test_a_line_that_is_cut(self):
        self.consumed[-1] = self.consumed[-1][:-1]
        self.assert_seen("not a record")
        self.consumed[-1] = b"1\t2\n"
        self.assert_seen("not a record")


if __name__ == "__main__":
    unittest.main()
