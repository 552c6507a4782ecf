#!/usr/bin/env python3
"""dohle groups: against brokers that are played. Two brokers, the second coordinates all groups; partition 0 of
topic t is led by the first, 1 by the second.

  test_groups.py PROGRAM
"""
import json

from case import Case, main
from fake import (DELETE_GROUPS, DESCRIBE_GROUPS, FIND_COORDINATOR, LIST_GROUPS, OFFSET_COMMIT, OFFSET_FETCH, Fake, array,
                  blob, i16, i32, i64, text)


def assignment(*partitions):
    return i16(0) + array([text("t") + array([i32(p) for p in partitions])]) + blob(None)


class Groups(Case):
    def setUp(self):
        super().setUp()
        self.fake = Fake(2)
        self.addCleanup(self.fake.__exit__)
        self.fake.topics["t"] = {0: 1, 1: 2}
        self.fake.offsets = {("t", 0): (5, 105), ("t", 1): (0, 7)}
        self.state, self.members = "Stable", [("m1", "c1", "/127.0.0.1", assignment(0, 1))]
        self.committed = {0: 100, 1: 9}
        self.commits, self.commit_code = [], 0
        self.fake.answer.update({DESCRIBE_GROUPS: self.describe_groups, OFFSET_FETCH: self.offset_fetch,
                                 OFFSET_COMMIT: self.offset_commit})

    def groups(self, *args, status=0, timeout="30"):
        r = self.run_dohle("groups", *args, "-b", self.fake.address, "--timeout", timeout)
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stdout if status == 0 else r.stderr

    def describe_groups(self, r):
        name = r.array(r.text)[0]
        members = [text(m) + text(None) + text(c) + text(h) + blob(b"") + blob(a) for m, c, h, a in self.members]
        return i32(0) + array([i16(0) + text(name) + text(self.state) + text("consumer") + text("range") +
                               array(members) + i32(-1 << 31)])

    def offset_fetch(self, r):
        self.assertEqual((r.text(), r.i32()), ("g", -1))
        partitions = [i32(p) + i64(o) + i32(-1) + text("") + i16(0) for p, o in self.committed.items()]
        return i32(0) + array([text("t") + array(partitions)]) + i16(0)

    def offset_commit(self, r):
        group, generation, member, instance = r.text(), r.i32(), r.text(), r.text()
        self.commits.append((group, generation, member, instance))

        def topic():
            name = r.text()
            v = r.array(lambda: (r.i32(), r.i64(), r.i32(), r.text()))
            self.commits += [(name, p, o) for p, o, _, _ in v]
            return text(name) + array([i32(p) + i16(self.commit_code) for p, *_ in v])

        return i32(0) + array(r.array(topic))

    def test_list(self):
        def list_groups(r):  # each broker its own
            node = self.fake.asked[LIST_GROUPS][-1]
            return i32(0) + i16(0) + array([text(f"g{3 - node}") + text("consumer" if node == 1 else "")])

        self.fake.answer[LIST_GROUPS] = list_groups
        self.assertEqual(self.groups("list"), "GROUP  TYPE  PROTOCOL  STATE\n"
                                              "g1     -     -         -\n"
                                              "g2     -     consumer  -\n")
        self.assertEqual(json.loads(self.groups("list", "--json")),
                         [{"group": "g1", "type": None, "protocol": None, "state": None},
                          {"group": "g2", "type": None, "protocol": "consumer", "state": None}])
        self.assertEqual(sorted(self.fake.asked[LIST_GROUPS]), [1, 1, 2, 2])

    def test_list_waits_for_a_coordinator_that_loads(self):
        codes = [0, 14, 0, 0]
        self.fake.answer[LIST_GROUPS] = lambda r: i32(0) + i16(codes.pop(0)) + array([])
        self.assertEqual(self.groups("list"), "")
        self.assertEqual(codes, [])

    def test_list_says_what_is_missing(self):
        self.fake.answer[LIST_GROUPS] = lambda r: (
            i32(0) + i16(0) + array([text("g") + text("")]) if self.fake.asked[LIST_GROUPS][-1] == 1 else None)
        r = self.run_dohle("groups", "list", "-b", self.fake.address)
        self.assertEqual(r.returncode, 1)
        self.assertIn("\ng ", r.stdout)
        self.assertIn("ended the connection while it was asked for ListGroups", r.stderr)

    def test_describe(self):
        name = f"127.0.0.1:{self.fake.nodes[1].port}"
        self.assertEqual(self.groups("describe", "g"),
                         "group        g\n"
                         "type         classic\n"
                         "state        Stable\n"
                         f"coordinator  2 ({name})\n"
                         "assignor     range\n"
                         "members      1\n"
                         "lag          5\n"
                         "\n"
                         "TOPIC  PARTITION  COMMITTED  END  LAG  MEMBER  HOST\n"
                         "t              0        100  105    5  m1      /127.0.0.1\n"
                         "t              1          9    7    0  m1      /127.0.0.1\n")
        g = json.loads(self.groups("describe", "g", "--json"))[0]
        self.assertEqual((g["group"], g["type"], g["state"], g["coordinator"], g["lag"]), ("g", "classic", "Stable", 2, 5))
        self.assertEqual(g["members"], [{"id": "m1", "instance": None, "client": "c1", "host": "/127.0.0.1"}])
        self.assertEqual([(o["partition"], o["committed"], o["end"], o["lag"], o["member"]) for o in g["offsets"]],
                         [(0, 100, 105, 5, "m1"), (1, 9, 7, 0, "m1")])
        self.assertEqual(set(self.fake.asked[OFFSET_FETCH]), {2})

    def test_describe_what_is_assigned_or_committed_alone(self):
        self.members = [("m1", "c", "h", assignment(1)), ("m2", "c", "h", assignment())]
        self.committed = {0: 100, 7: 3}  # the topic had more partitions once
        rows = [line.split() for line in self.groups("describe", "g").splitlines()[-3:]]
        self.assertEqual(rows, [["t", "0", "100", "105", "5", "-", "-"], ["t", "1", "-", "7", "-", "m1", "h"],
                                ["t", "7", "3", "-", "-", "-", "-"]])

    def test_assignments_that_are_none(self):
        for data in (b"", b"\0", i16(0), i16(-1), i16(9) + b"x", i16(0) + i32(1 << 30), assignment(0)[:-1],
                     i16(0) + array([text("t") + array([i32(-5)])]) + blob(None)):
            self.members = [("m1", "c", "h", data)]
            rows = self.groups("describe", "g").splitlines()[-2:]
            self.assertEqual([r.split()[-2:] for r in rows], [["-", "-"]] * 2)

    def test_describe_a_group_that_is_not_there(self):
        self.state, self.members, self.committed = "Dead", [], {}
        self.assertEqual(self.groups("describe", "g", status=1), "dohle: group g: no such group (GROUP_ID_NOT_FOUND)\n")

    def test_a_coordinator_that_comes_later(self):
        codes = [15, 14, 0]
        own = self.fake.find_coordinator

        def find(r):
            code = codes.pop(0)
            return own(r) if code == 0 else i32(0) + i16(code) + text(None) + i32(-1) + text("") + i32(-1)

        self.fake.answer[FIND_COORDINATOR] = find
        self.groups("describe", "g")
        self.fake.answer[FIND_COORDINATOR] = lambda r: i32(0) + i16(15) + text(None) + i32(-1) + text("") + i32(-1)
        self.assertIn("group g: it has no coordinator yet", self.groups("describe", "g", status=1, timeout="1"))

    def test_reset(self):
        self.members, self.state = [], "Empty"
        shown = ("TOPIC  PARTITION  BEFORE  AFTER\n"
                 "t              0     100    103\n"
                 "t              1       9      5\n")
        self.assertEqual(self.groups("reset", "g", "--to", "-2", "--all-topics"),
                         shown + "nothing is changed yet: --execute does it\n")
        self.assertEqual(self.commits, [])
        self.assertEqual(self.groups("reset", "g", "--to", "-2", "--topic", "t", "--execute"), shown)
        self.assertEqual(self.commits, [("g", -1, "", None), ("t", 0, 103), ("t", 1, 5)])
        self.assertEqual(self.fake.asked[OFFSET_COMMIT], [2])
        self.commits.clear()
        self.committed = {}
        self.assertEqual(self.groups("reset", "g", "--to", "earliest", "-t", "t:0", "-t", "t:0", "--execute"),
                         "TOPIC  PARTITION  BEFORE  AFTER\n"
                         "t              0       -      5\n")
        self.assertEqual(self.commits[1:], [("t", 0, 5)])

    def test_reset_keeps_within_the_log(self):
        self.members, self.state = [], "Empty"
        r = self.run_dohle("groups", "reset", "g", "--to", "50", "--all-topics", "-b", self.fake.address)
        self.assertEqual([line.split()[-1] for line in r.stdout.splitlines()[1:3]], ["50", "7"])
        self.assertEqual(r.stderr, "dohle: t-1 holds 0 to 7: 7 is taken for 50\n")

    def test_reset_refused(self):
        self.assertIn("group g has members (1): stop them first", self.groups("reset", "g", "--to", "latest", "--all-topics",
                                                                              status=1))
        self.members, self.state, self.committed = [], "Empty", {}
        for args, says in ((["--all-topics"], "has committed no offsets"), (["-t", "nosuch"], "topic nosuch: no such topic"),
                           (["-t", "t:2"], "topic t has no partition 2")):
            self.assertIn(says, self.groups("reset", "g", "--to", "latest", *args, status=1))
        self.commit_code = 25
        self.assertIn("t-0: the group has members: only they may commit",
                      self.groups("reset", "g", "--to", "latest", "-t", "t:0", "--execute", status=1))

    def test_delete(self):
        codes = {"g": 0, "h": 68}

        def delete(r):
            name = r.array(r.text)[0]
            return i32(0) + array([text(name) + i16(codes[name])])

        self.fake.answer[DELETE_GROUPS] = delete
        self.assertEqual(self.groups("delete", "g"), "deleted g\n")
        r = self.run_dohle("groups", "delete", "h", "g", "-b", self.fake.address)
        self.assertEqual((r.returncode, r.stdout), (1, "deleted g\n"))
        self.assertEqual(r.stderr, "dohle: group h: the group has members: stop them first (NON_EMPTY_GROUP)\n")
        soon = iter([14, 16, 0])  # it starts, then another has it
        self.fake.answer[DELETE_GROUPS] = lambda r: i32(0) + array([text("g") + i16(next(soon))])
        self.assertEqual(self.groups("delete", "g"), "deleted g\n")

    def test_mistakes(self):
        for args, says in ((["describe"], "GROUP is missing"), (["delete"], "GROUP is missing"), (["reset"], "GROUP is missing"),
                           (["reset", "g"], "--to is missing"), (["reset", "g", "--to", "x", "-t", "t"], "earliest, latest"),
                           (["reset", "g", "--to", "0"], "either --topic or --all-topics"),
                           (["reset", "g", "--to", "0", "-t", "t", "--all-topics"], "either --topic or --all-topics"),
                           (["reset", "g", "-t", ":1"], "TOPIC:PARTITION"), (["reset", "g", "-t", "t:x"], "TOPIC:PARTITION")):
            with self.subTest(args=args):
                err = self.groups(*args, status=2)
                self.assertIn(says, err.splitlines()[0])
                self.assertEqual(err.splitlines()[1], f"Try 'dohle groups {args[0]} --help'.")


if __name__ == "__main__":
    main()
