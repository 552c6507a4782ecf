#!/usr/bin/env python3
"""dohle consume --group: members of a group of a Dohle share partitions, commit and go on; and brokers that are
played, for what a coordinator may say.

  test_members.py PROGRAM
"""
import concurrent.futures
import json
import select
import signal
import subprocess
import time

from case import DOHLE, WAIT_S, Case, main
from fake import (FETCH, FIND_COORDINATOR, SILENCE, HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, OFFSET_FETCH, SYNC_GROUP, Fake, array, batch, blob,
                  fetch_answer, fetch_request, i16, i32, i64, text)
from test_records import Records


class Members(Records):
    def serve(self, port=0):
        p = self.start("--data", self.data, "--port", str(port), "--set", "group.initial.rebalance.delay.ms=0")
        return self.ready(p)[1]

    def member(self, *args, topic="t"):
        return self.follow(topic, "-g", "g", *args)

    def group(self):
        return json.loads(self.dohle("groups", "describe", "g", "--json"))[0]

    def shares(self):
        """member -> partitions, once the group is stable."""
        listed = json.loads(self.dohle("groups", "list", "--json"))
        if not listed:
            return {}
        g = self.group()
        shares = {m["id"]: [o["partition"] for o in g["offsets"] if o["member"] == m["id"]] for m in g["members"]}
        return shares if g["state"] == "Stable" else {}

    def finish(self, p):
        """What else it wrote; it leaves at once."""
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=WAIT_S)
        self.assertEqual((p.returncode, err), (0, b""))
        return (self.kept.pop(p, b"") + out).split()

    def test_goes_on_where_the_group_is(self):
        self.create("t")
        self.produce("t", "1\n2\n3\n4\n5\n")
        self.assertEqual(self.consume("t", "-g", "g", "-n", "2"), b"1\n2\n")
        self.assertEqual(self.group()["offsets"][0]["committed"], 2)
        self.assertEqual(self.group()["members"], [])  # it has left
        self.assertEqual(self.consume("t", "-g", "g"), b"3\n4\n5\n")
        self.assertEqual(self.consume("t", "-g", "g"), b"")
        self.assertEqual(self.consume("t", "-g", "other", "--from", "-1"), b"5\n")
        self.produce("t", "6\n")
        self.assertEqual(self.consume("t", "-g", "g", "--from", "earliest"), b"6\n")

    def test_two_share_and_one_takes_over(self):
        self.create("t", 4)
        first = self.member()
        self.wait_for(lambda: len(self.shares()) == 1)
        second = self.member()
        self.wait_for(lambda: [len(s) for s in self.shares().values()] == [2, 2])
        self.assertEqual(sorted(sum(self.shares().values(), [])), [0, 1, 2, 3])
        for p in range(4):
            self.produce("t", f"a{p}\n", "-p", str(p))
        got = self.read(first, 2), self.read(second, 2)
        self.assertEqual(sorted(got[0] + got[1]), [b"a0", b"a1", b"a2", b"a3"])
        self.assertEqual(self.finish(first), [])
        self.wait_for(lambda: [len(s) for s in self.shares().values()] == [4])
        for p in range(4):
            self.produce("t", f"b{p}\n", "-p", str(p))
        self.assertEqual(sorted(self.read(second, 4)), [b"b0", b"b1", b"b2", b"b3"])
        self.assertEqual(self.finish(second), [])
        self.assertEqual(self.group()["lag"], 0)

    def test_more_members_than_partitions(self):
        self.create("t")
        members = [self.member(), self.member()]
        self.wait_for(lambda: sorted(len(s) for s in self.shares().values()) == [0, 1])
        self.assertEqual(self.consume("t", "-g", "g"), b"")
        self.produce("t", "x\n")
        self.assertTrue(select.select([m.stdout for m in members], [], [], WAIT_S)[0])
        self.assertEqual(sorted(self.finish(members[0]) + self.finish(members[1])), [b"x"])

    def test_partitions_that_are_added(self):
        self.create("t")
        alone, member, other = self.follow("t"), self.member(), self.member()
        self.wait_for(lambda: sorted(len(s) for s in self.shares().values()) == [0, 1])
        self.dohle("topics", "add-partitions", "t", "--to", "2")
        self.produce("t", "x\n", "-p", "1")
        self.assertEqual(self.read(alone, 1), [b"x"])
        self.wait_for(lambda: sorted(len(s) for s in self.shares().values()) == [1, 1])
        self.assertTrue(select.select([member.stdout, other.stdout], [], [], WAIT_S)[0])
        self.assertEqual(sorted(self.finish(member) + self.finish(other)), [b"x"])

    def test_the_broker_is_killed_and_comes_back(self):
        self.create("t")
        p = self.member()
        self.produce("t", "1\n")
        self.read(p, 1)
        self.processes[0].kill()
        self.processes[0].wait()
        self.serve(self.port)
        self.produce("t", "2\n")
        got = self.read(p, 1)
        while got[-1] != b"2":  # what was not committed may come again
            got += self.read(p, 1)
        self.assertLessEqual(set(got), {b"1", b"2"})
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(WAIT_S), 0)
        self.assertEqual(self.group()["offsets"][0]["committed"], 2)

    def test_a_reader_that_went_away_commits_nothing_unread(self):
        self.create("t")
        self.produce("t", "x\n" * 200000)
        p = self.member()
        self.read(p, 1)
        p.stdout.close()
        self.assertEqual((p.wait(WAIT_S), p.stderr.read()), (0, b""))
        committed = self.group()["offsets"][0]["committed"] or 0
        self.assertLess(committed, 200000)

    def test_mistakes(self):
        self.assertIn("exclude each other", self.consume("t", "-g", "g", "-p", "0", status=2))
        self.assertIn("--group needs GROUP", self.consume("t", "-g", "", status=2))


class Played(Case):
    """Two brokers, the second coordinates; topic t has partitions 0 and 1 with a record each."""

    def setUp(self):
        super().setUp()
        self.fake = Fake(2)
        self.addCleanup(self.fake.__exit__)
        self.fake.topics["t"] = {0: 1, 1: 1}
        self.fake.offsets = {("t", 0): (0, 1), ("t", 1): (0, 1)}
        self.codes = {}  # api -> what the next requests meet
        self.joined, self.assigned, self.commits, self.left = [], None, [], []
        self.others = []  # (member, subscription)
        self.fake.answer.update({JOIN_GROUP: self.join, SYNC_GROUP: self.sync, HEARTBEAT: self.heartbeat,
                                 OFFSET_FETCH: self.offset_fetch, OFFSET_COMMIT: self.commit, LEAVE_GROUP: self.leave,
                                 FETCH: lambda r: fetch_answer("t", {p: (0, batch(0, [(None, b"r%d" % p)]) if o == 0 else b"", [])
                                                                     for p, o in fetch_request(r).items()})})

    def code(self, api):
        return self.codes[api].pop(0) if self.codes.get(api) else 0

    def join(self, r):
        group, _, _, member, instance, kind, protocols = (r.text(), r.i32(), r.i32(), r.text(), r.text(), r.text(),
                                                          r.array(lambda: (r.text(), r.blob())))
        self.assertEqual((group, instance, kind, protocols[0][0]), ("g", None, "consumer", "range"))
        self.joined.append(member)
        code = self.code(JOIN_GROUP)
        if code is None:
            return None
        member = member or "me"
        members = [text(m) + text(None) + blob(s) for m, s in [(member, protocols[0][1]), *self.others]]
        return i32(0) + i16(code) + i32(7) + text("range") + text(member) + text(member) + array(members)

    def sync(self, r):
        r.text(), r.i32(), r.text(), r.text()
        self.assigned = dict(r.array(lambda: (r.text(), r.blob())))
        return i32(0) + i16(self.code(SYNC_GROUP)) + blob(self.assigned.get("me"))

    def heartbeat(self, r):
        return i32(0) + i16(self.code(HEARTBEAT))

    def offset_fetch(self, r):
        code = self.code(OFFSET_FETCH)
        return i32(0) + array([text("t") + array([i32(p) + i64(-1) + i32(-1) + text("") + i16(code) for p in (0, 1)])]) + i16(0)

    def commit(self, r):
        group, generation, member, _ = r.text(), r.i32(), r.text(), r.text()
        r.i32()
        name = r.text()
        partitions = r.array(lambda: (r.i32(), r.i64(), r.i32(), r.text()))
        self.commits.append((group, generation, member, name, [(p, o) for p, o, _, _ in partitions]))
        code = self.code(OFFSET_COMMIT)
        return i32(0) + array([text(name) + array([i32(p) + i16(code) for p, *_ in partitions])])

    def leave(self, r):
        self.left.append((r.text(), r.text()))
        return i32(0) + i16(0)

    def consume(self, *args, status=0, timeout="30"):
        r = self.run_dohle("consume", "t", "-g", "g", "-e", "-b", self.fake.address, "--timeout", timeout, *args)
        self.assertEqual(r.returncode, status, r.stderr)
        return sorted(r.stdout.split()) if status == 0 else r.stderr

    def test_joins_commits_and_leaves(self):
        self.assertEqual(self.consume(), ["r0", "r1"])
        self.assertEqual(self.joined, [""])
        self.assertEqual(self.commits, [("g", 7, "me", "t", [(0, 1), (1, 1)])])
        self.assertEqual(self.left, [("g", "me")])
        for api in (JOIN_GROUP, SYNC_GROUP, OFFSET_FETCH, OFFSET_COMMIT, LEAVE_GROUP):
            self.assertEqual(set(self.fake.asked[api]), {2})

    def test_takes_the_id_that_it_is_given(self):
        self.codes[JOIN_GROUP] = [79, 0]
        self.consume()
        self.assertEqual(self.joined, ["", "me"])

    def test_begins_anew_when_it_is_not_known(self):
        self.codes = {JOIN_GROUP: [0, 25, 0, 0], SYNC_GROUP: [27, 22, 0]}
        self.consume()
        self.assertEqual(self.joined, ["", "me", "", ""])

    def test_what_may_be_over_soon(self):
        self.codes = {JOIN_GROUP: [15, 16, None, 14], OFFSET_FETCH: [14, 88], OFFSET_COMMIT: [16, 14]}
        self.assertEqual(self.consume(), ["r0", "r1"])
        self.assertEqual(len(self.commits), 3)

    def test_no_broker_for_a_moment(self):
        """The coordinator moved, and whoever is asked where hangs up."""
        told = iter([True] + [False] * 4 + [True] * 100)
        self.fake.answer[FIND_COORDINATOR] = lambda r: self.fake.find_coordinator(r) if next(told) else None
        self.codes[OFFSET_COMMIT] = [16]
        self.assertEqual(self.consume(), ["r0", "r1"])
        self.assertEqual(self.left, [("g", "me")])

    def test_what_is_not(self):
        self.codes[JOIN_GROUP] = [23]
        self.assertIn("group g: its members share partitions in another way", self.consume(status=1))
        self.codes = {JOIN_GROUP: [15] * 1000}
        self.assertIn("group g: it has no coordinator yet", self.consume(status=1, timeout="1"))
        self.codes = {OFFSET_COMMIT: [12]}
        self.assertIn("group g: ", self.consume(status=1))

    def test_a_group_that_moved_on_is_no_failure(self):
        self.codes[OFFSET_COMMIT] = [27]
        self.assertEqual(self.consume(), ["r0", "r0", "r1", "r1"])  # not committed: read again
        self.assertEqual(len(self.joined), 2)

    def test_a_slow_reader_costs_no_membership(self):
        """Heartbeats go on while nobody reads what it writes."""
        much = batch(0, [(None, b"x" * 100000)] * 8)
        self.fake.answer[FETCH] = lambda r: fetch_answer("t", {p: (0, i64(o) + much[8:], []) for p, o in fetch_request(r).items()})
        p = subprocess.Popen([DOHLE, "consume", "t", "-g", "g", "-b", self.fake.address], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.processes.append(p)
        self.wait_for(lambda: len(self.fake.requests.get(HEARTBEAT, [])) >= 2)
        self.assertGreaterEqual(len(self.fake.requests[HEARTBEAT]), 2)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(WAIT_S), 0)
        self.assertEqual(self.left, [("g", "me")])

    def test_a_rebalance_between_heartbeats(self):
        self.codes = {HEARTBEAT: [27], JOIN_GROUP: [0, 0]}
        p = subprocess.Popen([DOHLE, "consume", "t", "-g", "g", "-b", self.fake.address], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.processes.append(p)
        self.wait_for(lambda: len(self.joined) >= 2)
        self.assertEqual(self.joined, ["", "me"])
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=WAIT_S)
        self.assertEqual((p.returncode, err), (0, b""))
        self.assertIn(("g", 7, "me", "t", [(0, 1), (1, 1)]), self.commits)  # before it joined again

    def lie(self, says, answer=None, codes=None, offsets=None):
        """A coordinator or a leader that says the same for ever."""
        other = Played("lie")
        other.setUp()
        try:
            other.fake.answer.update(answer or {})
            other.fake.offsets.update(offsets or {})
            other.codes = {api: [code] * 10000 for api, code in (codes or {}).items()}
            began = time.monotonic()
            self.assertIn(says, other.consume(status=1, timeout="1"))
            self.assertLess(time.monotonic() - began, WAIT_S / 2)
        finally:
            other.tearDown()
            other.doCleanups()

    def test_everything_ends(self):
        far = {("t", 0): (0, 1 << 40)}
        lies = [("the broker refuses (MEMBER_ID_REQUIRED)", {}, {JOIN_GROUP: 79}), ("(UNKNOWN_MEMBER_ID)", {}, {JOIN_GROUP: 25}),
                ("10 times its members changed before anything", {}, {OFFSET_COMMIT: 27}),
                ("group g: its coordinator is starting", {}, {OFFSET_FETCH: 14}),
                ("group g: the broker did not finish in time", {OFFSET_COMMIT: lambda r: SILENCE}),
                ("(OFFSET_OUT_OF_RANGE)", {FETCH: lambda r: fetch_answer("t", {p: (1, b"", []) for p in fetch_request(r)})}),
                ("from 0 on the broker sends none", {FETCH: lambda r: fetch_answer("t", {p: (0, b"", []) for p in fetch_request(r)})},
                 {}, far), ("from 1 on the broker sends none", {}, {}, far)]
        lies += [("do not come to rest; --timeout", *how) for how in (
            ({}, {JOIN_GROUP: 27}), ({}, {SYNC_GROUP: 27}), ({JOIN_GROUP: lambda r: SILENCE},), ({SYNC_GROUP: lambda r: SILENCE},))]
        with concurrent.futures.ThreadPoolExecutor(len(lies)) as pool:  # they wait
            for done in [pool.submit(self.lie, *lie) for lie in lies]:
                done.result()

    def test_a_topic_that_is_not_there(self):
        del self.fake.topics["t"]
        self.assertIn("topic t: no such topic", self.consume(status=1))
        self.assertEqual(self.joined, [])

    def test_the_leader_gives_ranges(self):
        def subscription(*topics):
            return i16(0) + array([text(t) for t in topics]) + blob(None)

        self.fake.topics.update({"t": {p: 1 for p in range(5)}, "u": {0: 1}})
        self.fake.offsets = {}
        self.others = [("a", subscription("u", "t", "u")), ("z", subscription("t")), ("b", subscription("u", "nosuch")),
                       ("c", b""), ("d", i16(1) + array([text("u")]) + blob(b"x") + array([]))]
        self.consume()

        def one(topic, *partitions):
            return text(topic) + array([i32(p) for p in partitions])

        want = {"a": [one("t", 0, 1), one("u", 0)], "me": [one("t", 2, 3)], "z": [one("t", 4)], "b": [], "c": [], "d": []}
        self.assertEqual(self.assigned, {m: i16(0) + array(v) + blob(None) for m, v in want.items()})

    def test_assignments_that_are_none(self):
        own = self.sync
        for data in (b"", b"\0", i16(-1), i16(0) + i32(1 << 30), None):
            self.fake.answer[SYNC_GROUP] = lambda r: (own(r) and i32(0) + i16(0) +
                                                      (blob(data) if data is not None else i32(0)))
            self.assertEqual(self.consume(), [])
        self.fake.answer[SYNC_GROUP] = lambda r: (own(r) and i32(0) + i16(0) + blob(
            i16(0) + array([text("t") + array([i32(-1), i32(0), i32(77)])]) + blob(None)))
        self.assertIn("t-77: no such topic or partition", self.consume(status=1))


if __name__ == "__main__":
    main()
