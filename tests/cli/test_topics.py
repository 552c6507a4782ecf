#!/usr/bin/env python3
"""dohle topics: against a Dohle, and against brokers that are played where the answers matter.

  test_topics.py PROGRAM
"""
import json

from case import Case, main
from fake import (CREATE_PARTITIONS, DELETE_RECORDS, DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, LIST_OFFSETS, Fake,
                  array, i16, i32, i64, i8, text)


class Topics(Case):
    def setUp(self):
        super().setUp()
        self.serve()

    def serve(self):
        p = self.start("--data", self.data, "--port", "0")
        self.broker = "127.0.0.1:%d" % self.ready(p)[1]
        return p

    def topics(self, *args, status=0):
        r = self.run_dohle("topics", *args, "-b", self.broker)
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stdout if status == 0 else r.stderr

    def test_create_list_delete(self):
        self.assertEqual(self.topics("list"), "")
        self.assertEqual(self.topics("list", "--json"), "[]\n")
        self.assertEqual(self.topics("create", "b", "a", "-p", "3"), "created b: 3 partitions, 1 replica\n"
                                                                    "created a: 3 partitions, 1 replica\n")
        self.assertEqual(self.topics("create", "c", "-c", "cleanup.policy=compact", "-c", "retention.ms=1", "-r1"),
                         "created c: 1 partition, 1 replica\n")
        self.assertEqual(self.topics("list"), "TOPIC  PARTITIONS  REPLICAS\n"
                                              "a               3         1\n"
                                              "b               3         1\n"
                                              "c               1         1\n")
        listed = json.loads(self.topics("list", "--json"))
        self.assertEqual([(t["name"], t["partitions"], t["replication_factor"], t["internal"]) for t in listed],
                         [("a", 3, 1, False), ("b", 3, 1, False), ("c", 1, 1, False)])
        self.assertEqual(len({t["id"] for t in listed}), 3)
        self.assertIn("(TOPIC_ALREADY_EXISTS)", self.topics("create", "a", status=1))
        self.assertEqual(self.topics("create", "a", "d", "--if-not-exists"),
                         "exists a\ncreated d: 1 partition, 1 replica\n")
        self.assertEqual(self.topics("delete", "a", "b"), "deleted a\ndeleted b\n")
        self.assertIn("dohle: topic a: no such topic", self.topics("delete", "a", "c", status=1))
        self.assertEqual(self.topics("delete", "a", "--if-exists"), "")
        self.assertEqual([t["name"] for t in json.loads(self.topics("list", "--json"))], ["d"])

    def test_what_connect_keeps_its_state_in(self):
        """TL-01: a worker makes its topics at every start; they stay compacted alone."""
        def policies():
            described = json.loads(self.topics("describe", "configs", "offsets", "--json"))
            return [(len(t["partitions"]), t["configs"]) for t in described]

        compacted = "-c", "cleanup.policy=compact"
        self.topics("create", "configs", "-p", "1", *compacted)
        self.topics("create", "offsets", "-p", "25", *compacted)
        before = policies()
        self.assertEqual(before, [(1, {"cleanup.policy": "compact"}), (25, {"cleanup.policy": "compact"})])
        self.assertIn("TOPIC_ALREADY_EXISTS", self.topics("create", "configs", "-p", "1", *compacted, status=1))
        self.assertEqual(self.stop(self.processes.pop(0))[0], 0)
        self.serve()
        self.assertIn("TOPIC_ALREADY_EXISTS", self.topics("create", "offsets", "-p", "25", *compacted, status=1))
        self.assertEqual(policies(), before)

    def test_what_a_broker_refuses(self):
        for args, says in ((["create", "x/y"], "INVALID_TOPIC_EXCEPTION"), (["create", "x", "-r", "2"],
                                                                            "INVALID_REPLICATION_FACTOR"),
                           (["create", "x", "-c", "no.such=1"], "INVALID_CONFIG"),
                           (["describe", "x"], "topic x: no such topic")):
            err = self.topics(*args, status=1)
            self.assertTrue(err.startswith("dohle: topic x"), err)
            self.assertIn(says, err)

    def test_mistakes(self):
        for args, says in ((["create"], "NAME is missing"), (["create", "x", "-p", "0"], "--partitions needs a number"),
                           (["create", "x", "-c", "k"], "--config needs KEY=VALUE"), (["delete"], "NAME is missing"),
                           (["add-partitions", "x"], "one of --to and --by"),
                           (["add-partitions", "x", "--to", "2", "--by", "1"], "one of --to and --by"),
                           (["trim", "x"], "--before is missing"), (["trim", "x", "--before", "soon"], "earliest, latest"),
                           (["alter", "x"], "--config or --unset is missing"), (["describe"], "NAME is missing")):
            with self.subTest(args=args):
                err = self.topics(*args, status=2)
                self.assertIn(says, err.splitlines()[0])
                self.assertEqual(err.splitlines()[1], f"Try 'dohle topics {args[0]} --help'.")


class Played(Case):
    """Two brokers; partition 0 is led by the first, 1 by the second."""

    def setUp(self):
        super().setUp()
        self.fake = Fake(2)
        self.addCleanup(self.fake.__exit__)
        self.fake.topics["t"] = {0: 1, 1: 2}
        self.fake.offsets = {("t", 0): (5, 105), ("t", 1): (0, 7)}
        config = {"cleanup.policy": ("compact", 1), "retention.ms": ("1000", 5), "x.secret": (None, 1)}
        self.fake.answer[DESCRIBE_CONFIGS] = lambda r: i32(0) + array(
            [i16(0) + text(None) + i8(2) + text("t") + array([
                text(k) + text(v) + i8(0) + i8(source) + i8(0) + array([]) for k, (v, source) in config.items()])])

    def topics(self, *args, status=0, timeout="30"):
        r = self.run_dohle("topics", *args, "-b", self.fake.address, "--timeout", timeout)
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stdout if status == 0 else r.stderr

    def test_describe(self):
        out = self.topics("describe", "t")
        self.assertEqual(out, "topic       t\n"
                              "partitions  2\n"
                              "replicas    1\n"
                              "config      cleanup.policy=compact\n"
                              "config      x.secret=\n"
                              "\n"
                              "PARTITION  LEADER  EPOCH  REPLICAS  ISR  OFFLINE  START  END\n"
                              "        0       1      0  1         1    -            5  105\n"
                              "        1       2      0  2         2    -            0    7\n")
        t = json.loads(self.topics("describe", "t", "--json"))[0]
        self.assertEqual(t["configs"], {"cleanup.policy": "compact", "x.secret": None})
        self.assertEqual([(p["partition"], p["leader"], p["start"], p["end"]) for p in t["partitions"]],
                         [(0, 1, 5, 105), (1, 2, 0, 7)])

    def test_describe_without_a_leader(self):
        self.fake.topics["t"][1] = -1
        self.assertEqual(self.topics("describe", "t").splitlines()[-1].split(), ["1", "-", "0", "-1", "-1", "-", "-", "-"])

    def test_add_partitions(self):
        counts = []

        def create(r):
            name, count, assigned = r.i32() and r.text(), r.i32(), r.i32()
            counts.append((name, count, assigned))
            return i32(0) + array([text(name) + i16(37 if count > 100 else 0) +
                                   text("too many" if count > 100 else None)])

        self.fake.answer[CREATE_PARTITIONS] = create
        self.assertEqual(self.topics("add-partitions", "t", "--by", "3"), "t has 5 partitions (had 2)\n")
        self.assertEqual(self.topics("add-partitions", "t", "--to", "3"), "t has 3 partitions (had 2)\n")
        self.assertEqual(counts, [("t", 5, -1), ("t", 3, -1)])
        self.assertEqual(self.topics("add-partitions", "t", "--to", "101", status=1),
                         "dohle: topic t: too many (INVALID_PARTITIONS)\n")

    def test_trim(self):
        asked = []

        def delete(r):
            def topic():
                name = r.text()
                v = [(r.i32(), r.i64()) for _ in range(r.i32())]
                asked.extend((name, *p) for p in v)
                return text(name) + array([i32(p) + i64(o) + i16(44 if o == 105 else 0) for p, o in v])
            return i32(0) + array(r.array(topic))

        self.fake.answer[DELETE_RECORDS] = delete
        self.assertEqual(self.topics("trim", "t", "--before", "-10"), "t-0 starts at 95\nt-1 starts at 0\n")
        self.assertEqual(sorted(asked), [("t", 0, 95), ("t", 1, 0)])
        self.assertEqual(sorted(self.fake.asked[DELETE_RECORDS]), [1, 2])
        self.assertEqual(self.topics("trim", "t", "--before", "3", "-p", "1"), "t-1 starts at 3\n")
        err = self.topics("trim", "t", "--before", "latest", status=1)
        self.assertIn("t-0: its cleanup.policy does not contain delete (POLICY_VIOLATION)", err)
        self.assertIn("t has no partition 9", self.topics("trim", "t", "--before", "latest", "-p", "9", status=1))

    def test_alter(self):
        changes = []

        def alter(r):
            r.i32()
            kind, name = r.i8(), r.text()
            changes.append((kind, name, r.array(lambda: (r.text(), r.i8(), r.text()))))
            return i32(0) + array([i16(40 if len(changes) > 1 else 0) + text("no") + i8(kind) + text(name)])

        self.fake.answer[INCREMENTAL_ALTER_CONFIGS] = alter
        self.assertEqual(self.topics("alter", "t", "-c", "a=b=c", "--unset", "d", "-c", "e="), "altered t\n")
        self.assertEqual(changes, [(2, "t", [("a", 0, "b=c"), ("d", 1, None), ("e", 0, "")])])
        self.assertEqual(self.topics("alter", "t", "-c", "a=b", status=1), "dohle: topic t: no (INVALID_CONFIG)\n")

    def test_a_leader_that_moved_is_asked_again(self):
        moved = []

        def moving(r):
            answer = self.fake.list_offsets(r)
            if moved:
                return answer
            moved.append(1)
            self.fake.topics["t"] = {0: 2, 1: 2}
            return answer.replace(i16(0) + i64(-1), i16(6) + i64(-1))

        self.fake.answer[LIST_OFFSETS] = moving
        self.topics("describe", "t")
        self.assertEqual(self.fake.asked[LIST_OFFSETS][-1], 2)
        self.assertEqual(len(moved), 1)

    def test_a_leader_that_never_knows(self):
        self.fake.answer[LIST_OFFSETS] = lambda r: self.fake.list_offsets(r).replace(i16(0) + i64(-1), i16(6) + i64(-1))
        out = self.topics("describe", "t", timeout="1")
        self.assertEqual([line.split()[-2:] for line in out.splitlines()[-2:]], [["-", "-"]] * 2)


if __name__ == "__main__":
    main()
