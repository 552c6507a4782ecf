#!/usr/bin/env python3
"""dohle produce and dohle consume: what goes in comes out; positions, ends, signals, brokers that restart, move
or lie.

  test_records.py PROGRAM
"""
import json
import os
import random
import select
import signal
import socket
import subprocess
import time

from case import DOHLE, WAIT_S, Case, main
from fake import (FETCH, PRODUCE, TRANSACTIONAL, Fake, batch, fetch_answer, fetch_request, i16, i32, i64, marker,
                  produce_answer, produce_request, read_batch)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Records(Case):
    def setUp(self):
        super().setUp()
        self.port = self.serve()
        self.broker = f"127.0.0.1:{self.port}"
        self.kept = {}

    def serve(self, port=0):
        p = self.start("--data", self.data, "--port", str(port))
        return self.ready(p)[1]

    def dohle(self, *args, data=b"", status=0):
        r = subprocess.run([DOHLE, *args, "-b", self.broker], input=data, capture_output=True, timeout=WAIT_S,
                           cwd=self.dir)
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stdout if status == 0 else r.stderr.decode()

    def produce(self, topic, data, *args, **more):
        if isinstance(data, str):
            data = data.encode()
        return self.dohle("produce", topic, *args, data=data, **more)

    def consume(self, topic, *args, **more):
        return self.dohle("consume", topic, "-e", *args, **more)

    def create(self, topic, partitions=1, **configs):
        self.dohle("topics", "create", topic, "-p", str(partitions), *[w for k, v in configs.items()
                                                                       for w in ("-c", f"{k}={v}")])

    def follow(self, *args, command="consume"):
        p = subprocess.Popen([DOHLE, command, *args, "-b", self.broker], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, cwd=self.dir)
        self.processes.append(p)
        return p

    def read(self, p, n):
        """n lines that come within the time; what comes behind them is kept."""
        data = self.kept.pop(p, b"")
        while data.count(b"\n") < n:
            self.assertTrue(select.select([p.stdout], [], [], WAIT_S)[0], data)
            more = os.read(p.stdout.fileno(), 1 << 16)
            self.assertNotEqual(more, b"", data)
            data += more
        *lines, self.kept[p] = data.split(b"\n", n)
        return lines


    def wait_until_idle(self, p):
        """Until it has used no processor for a while."""
        deadline, quiet, before = time.monotonic() + WAIT_S, 0, None
        while quiet < 10 and time.monotonic() < deadline:
            time.sleep(0.02)
            with open(f"/proc/{p.pid}/stat", encoding="ascii") as f:
                used = f.read().rsplit(")", 1)[1].split()[11:13]
            quiet, before = quiet + 1 if used == before else 0, used
        self.assertEqual(quiet, 10)


class Text(Records):
    def test_lines(self):
        self.create("t")
        self.produce("t", "one\n\nthree\r\nl\0st")
        self.assertEqual(self.consume("t"), b"one\n\nthree\r\nl\0st\n")
        self.produce("t", "")
        self.produce("t", "\n")
        self.assertEqual(self.consume("t", "--from", "4"), b"\n")

    def test_keys_nulls_headers_delimiters(self):
        self.create("t")
        self.produce("t", "k::v::w|::x|null::null|", "-K", "::", "-d", "|", "--null", "null", "-H", "a=1", "-H", "b=")
        self.assertEqual(self.consume("t", "-K", "\\t", "-d", "\\0", "--null", "\\N"), b"k\tv::w\0\tx\0\\N\t\\N\0")
        lines = [json.loads(line) for line in self.consume("t", "--json").splitlines()]
        self.assertEqual([(r["key"], r["value"]) for r in lines], [("k", "v::w"), ("", "x"), (None, None)])
        for r in lines:
            self.assertEqual(r["headers"], [{"key": "a", "value": "1"}, {"key": "b", "value": ""}])
            self.assertAlmostEqual(r["timestamp"] / 1000, time.time(), delta=WAIT_S)

    def test_files(self):
        self.create("t")
        with open(f"{self.dir}/a", "wb") as a, open(f"{self.dir}/b", "wb") as b:
            a.write(b"1\n2")
            b.write(b"4\n")
        self.produce("t", "3\n", "a", "-", "b")
        self.assertEqual(self.consume("t"), b"1\n2\n3\n4\n")
        self.assertIn("cannot read missing: No such file", self.produce("t", "", "missing", status=1))
        self.assertIn("cannot read .: Is a directory", self.produce("t", "", ".", status=1))

    def test_bad_lines_end_it_and_say_where(self):
        self.create("t")
        self.assertIn("standard input, record 2: it has no key separator", self.produce("t", "a:b\nc\n", "-K", ":", status=1))
        self.assertIn("standard input, record 1: value is missing", self.produce("t", "{}", "--json", status=1))
        self.assertIn("it names no partition", self.produce("t", '{"value":""}', "--json", "--same-partition", status=1))
        self.assertIn("topic t has no partition 7", self.produce("t", "x", "-p", "7", status=1))

    def test_mistakes(self):
        for args, says in ((["produce"], "TOPIC is missing"), (["produce", "t", "-z", "zip"], "--codec is none"),
                           (["produce", "t", "--acks", "2"], "--acks is all"), (["produce", "t", "-K", ""], "--key is empty"),
                           (["produce", "t", "-d", "\\q"], "--delimiter knows"), (["produce", "t", "-H", "x"], "KEY=VALUE"),
                           (["produce", "t", "--same-partition"], "needs --json"),
                           (["produce", "t", "--json", "-K", ":"], "not for --json"), (["consume"], "TOPIC is missing"),
                           (["consume", "t", "u"], "unexpected argument u"), (["consume", "t", "--from", "x"], "earliest, latest"),
                           (["consume", "t", "-n", "0"], "--count needs"), (["consume", "t", "--isolation", "x"], "read_committed")):
            with self.subTest(args=args):
                err = self.dohle(*args, status=2)
                self.assertIn(says, err.splitlines()[0])
                self.assertEqual(err.splitlines()[1], f"Try 'dohle {args[0]} --help'.")


class Json(Records):
    def test_any_bytes_come_back_with_every_codec(self):
        rng = random.Random(5)

        def piece():
            n = rng.choice((None, 0, 1, 3, 40))
            return None if n is None else rng.choice((rng.randbytes(n), "äß€🐦\"\\\n"[:n].encode(), b"x" * n))

        def member(o, name, data):
            try:
                o[name] = None if data is None else data.decode()
            except UnicodeDecodeError:
                import base64
                o[name + "_base64"] = base64.b64encode(data).decode()
            return o

        lines = []
        for i in range(300):
            r = {"partition": rng.randrange(3), "timestamp": rng.choice((-1, 0, 1, 1700000000000 + i))}
            member(r, "key", piece())
            member(r, "value", piece())
            r["headers"] = [member(member({}, "key", piece() or b"h"), "value", piece()) for _ in range(rng.randrange(3))]
            lines.append(r)
        self.create("t", 3, **{"message.timestamp.before.max.ms": 1 << 62})
        data = "".join(json.dumps(r, ensure_ascii=rng.random() < .5) + "\n" for r in lines).encode()
        self.produce("t", data, "--json", "--same-partition")
        first = sorted(self.consume("t", "--json").splitlines())
        got = [json.loads(line) for line in first]
        self.assertEqual(len(got), len(lines))
        for p in range(3):  # in order within the partition
            there = sorted((g for g in got if g["partition"] == p), key=lambda g: g["offset"])
            self.assertEqual([{k: v for k, v in g.items() if k not in ("topic", "offset")} for g in there],
                             [r for r in lines if r["partition"] == p])
        for codec in CODECS:  # and again, byte for byte, through consume's own output
            self.create(codec, 3, **{"message.timestamp.before.max.ms": 1 << 62})
            self.produce(codec, b"\n".join(sorted(first, key=lambda line: json.loads(line)["offset"])), "--json",
                         "--same-partition", "-z", codec)
            again = self.consume(codec, "--json").replace(b'"topic":"%s"' % codec.encode(), b'"topic":"t"')
            self.assertEqual(sorted(again.splitlines()), first, codec)


class Partitions(Records):
    # By Apache Kafka's producer: key -> murmur2.
    JAVA = {"": 275646681, "21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
            "a-little-bit-longer-string": -1486304829, "abc": 479470107, "k1": 1684045097, "dohle": -1184093890}

    def test_keys_go_where_java_sends_them(self):
        self.create("t", 7)
        self.produce("t", "".join(f"{k}=v\n" for k in self.JAVA), "-K", "=")
        got = {r["key"]: r["partition"] for r in map(json.loads, self.consume("t", "--json").splitlines())}
        self.assertEqual(got, {k: (h & 0x7fffffff) % 7 for k, h in self.JAVA.items()})

    def test_the_partition_that_is_asked_for(self):
        self.create("t", 3)
        self.produce("t", "k:a\nl:b\n", "-K", ":", "-p", "2")
        self.assertEqual(self.consume("t", "-p", "2"), b"a\nb\n")
        self.assertEqual(self.consume("t", "-p", "0"), b"")
        self.assertIn("topic t has no partition 3", self.consume("t", "-p", "3", status=1))

    def test_records_without_key_go_everywhere(self):
        self.create("t", 3)
        self.produce("t", "".join(f"{i:0999}\n" for i in range(6000)))  # six batches of 1000
        counts = [len(self.consume("t", "-p", str(p)).splitlines()) for p in range(3)]
        self.assertEqual(sum(counts), 6000)
        self.assertGreater(min(counts), 0, counts)


class Positions(Records):
    def test_positions(self):
        self.create("t")
        self.produce("t", "".join(json.dumps({"value": str(i), "timestamp": 1700000000000 + i}) + "\n" for i in range(10)),
                     "--json")

        def values(*args):
            return [int(v) for v in self.consume("t", *args).split()]

        self.assertEqual(values("--from", "earliest"), list(range(10)))
        self.assertEqual(values("--from", "latest"), [])
        self.assertEqual(values("--from", "7"), [7, 8, 9])
        self.assertEqual(values("--from", "-3"), [7, 8, 9])
        self.assertEqual(values("--from", "-30"), list(range(10)))
        self.assertEqual(values("--from", "4", "-n", "2"), [4, 5])
        self.assertEqual(values("-n", "100"), list(range(10)))
        r = subprocess.run([DOHLE, "consume", "t", "-e", "--from", "11", "-b", self.broker], capture_output=True, timeout=WAIT_S)
        self.assertEqual((r.returncode, r.stdout), (0, b""))
        self.assertIn(b"t-0 has no offset 11: it holds 0 to 10, beginning at 10", r.stderr)

    def test_a_topic_that_is_not_there(self):
        self.assertIn("topic nosuch: no such topic", self.consume("nosuch", status=1))
        self.dohle("topics", "list")
        self.produce("made", "x")  # as auto.create.topics.enable has it
        self.assertEqual(self.consume("made"), b"x\n")


class Following(Records):
    def test_records_come_as_they_are_written(self):
        self.create("t")
        p = self.follow("t")
        out = self.follow("t", "--json", command="produce")
        for i in range(3):
            out.stdin.write(b'{"value":"%d"}\n' % i)
            out.stdin.flush()
            self.assertEqual(self.read(p, 1), [b"%d" % i])
        out.stdin.close()
        self.assertEqual(out.wait(WAIT_S), 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            p.send_signal(number)
            self.assertEqual((p.wait(WAIT_S), p.stderr.read()), (0, b""))
            p = self.follow("t", "--from", "earliest")
            self.assertEqual(self.read(p, 1), [b"0"])  # it runs
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(WAIT_S), 0)

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        self.create("t")
        self.produce("t", "x\n" * 100000)
        for args in ([], ["--json"]):
            p = self.follow("t", *args)
            self.read(p, 1)
            p.stdout.close()
            self.assertEqual((p.wait(WAIT_S), p.stderr.read()), (0, b""))
        p = self.follow("t", "--from", "latest")  # also while there is nothing to write
        p.stdout.close()
        self.assertEqual((p.wait(WAIT_S), p.stderr.read()), (0, b""))

    def test_a_reader_that_is_slow_costs_no_memory_and_no_signal(self):
        self.create("t")
        self.produce("t", "x\n" + ("x" * 9999 + "\n") * 7000, "-z", "zstd")
        p = self.follow("t")
        self.read(p, 1)
        self.wait_until_idle(p)
        with open(f"/proc/{p.pid}/statm", encoding="ascii") as f:
            resident = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        self.assertLess(resident, 60 << 20)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(WAIT_S), 0)

    def test_output_that_cannot_be_written(self):
        self.create("t")
        self.produce("t", "x")
        with open("/dev/full", "wb") as full:
            r = subprocess.run([DOHLE, "consume", "t", "-e", "-b", self.broker], stdout=full, stderr=subprocess.PIPE,
                               timeout=WAIT_S)
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"cannot write to standard output: No space left", r.stderr)

    def test_interrupted_producer_says_what_is_written(self):
        self.create("t")
        p = self.follow("t", command="produce")
        p.stdin.write(b"a\n")
        p.stdin.flush()
        self.read(self.follow("t"), 1)
        p.send_signal(signal.SIGINT)  # all that it got is written
        self.assertEqual((p.wait(WAIT_S), p.stderr.read()), (0, b""))


class Restart(Records):
    def test_the_broker_is_killed_and_comes_back(self):
        """Nothing that was given to produce is lost or doubled, and consume goes on."""
        self.create("t")
        out, reader = self.follow("t", command="produce"), self.follow("t")
        n = 0
        for round_ in range(3):
            for _ in range(200):
                out.stdin.write(b"%d\n" % n)
                n += 1
            out.stdin.flush()
            if round_ == 1:
                self.read(reader, 1)
                self.processes[0].kill()
                self.processes[0].wait()
                out.stdin.write(b"%d\n" % n)  # while nobody is there
                n += 1
                out.stdin.flush()
                self.processes[0].communicate()
                self.serve(self.port)
        out.stdin.close()
        self.assertEqual(out.wait(WAIT_S), 0, out.stderr.read())
        self.assertEqual(self.read(reader, n - 1), [b"%d" % i for i in range(1, n)])
        self.assertEqual(self.consume("t").split(), [b"%d" % i for i in range(n)])
        err = out.stderr.read() + (reader.kill() or reader.stderr.read())
        self.assertIn(self.broker.encode(), err)  # both said once what they met
        self.assertLessEqual(len(err.splitlines()), 4, err)

    def test_a_broker_that_stays_away(self):
        self.create("t")
        p = self.follow("t", "--timeout", "1")
        self.produce("t", "x")
        self.read(p, 1)
        self.processes[0].kill()
        self.assertEqual(p.wait(WAIT_S), 1)
        self.assertIn(b"no broker at", p.stderr.read())
        err = self.produce("t", "x", "--timeout", "1", status=1)
        self.assertIn("no broker at", err)


class Played(Case):
    """Two brokers; partition 0 is led by the first, 1 by the second."""

    def setUp(self):
        super().setUp()
        self.fake = Fake(2)
        self.addCleanup(self.fake.__exit__)
        self.fake.topics["t"] = {0: 1, 1: 2}
        self.log = {0: [], 1: []}  # values
        self.fail = []  # what the next produce requests meet
        self.fake.answer[PRODUCE] = self.take
        self.sequences = []

    def take(self, r):
        sent = produce_request(r)
        error = self.fail.pop(0) if self.fail else 0
        if error is None:
            return None
        for p, data in sent.items():
            sequence, producer_id, values = read_batch(data)
            self.sequences.append((p, sequence, len(values), producer_id))
            if error == 0:
                self.log[p] += values
        return produce_answer("t", {p: error for p in sent})

    def run_it(self, *args, data="", timeout="30"):
        return subprocess.run([DOHLE, *args, "-b", self.fake.address, "--timeout", timeout], input=data.encode(),
                              capture_output=True, timeout=WAIT_S)

    def produce(self, data, *args, status=0, timeout="30"):
        r = self.run_it("produce", "t", *args, data=data, timeout=timeout)
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stderr.decode()

    def test_each_leader_gets_its_own(self):
        self.produce('{"partition":0,"value":"a"}\n{"partition":1,"value":"b"}\n', "--json", "--same-partition")
        self.assertEqual(self.log, {0: [b"a"], 1: [b"b"]})
        self.assertEqual(sorted(self.fake.asked[PRODUCE]), [1, 2])

    def test_what_may_succeed_later_is_sent_again_as_it_was(self):
        self.fail = [6, None, 5]  # another leader, hangs up, no leader
        self.produce("a\nb\n", "-p", "0")
        self.assertEqual(self.log[0], [b"a", b"b"])
        self.assertEqual(self.sequences, [(0, 0, 2, 1000)] * 3)

    def test_what_was_written_before_its_answer_was_lost(self):
        self.fail = [46]  # the broker has it already
        self.produce("a\n", "-p", "0")
        self.assertEqual(len(self.sequences), 1)

    def test_what_never_succeeds(self):
        self.fail = [6] * 1000
        err = self.produce("a\n", "-p", "0", status=1, timeout="1")
        self.assertIn("t-0: its leader moved (NOT_LEADER_OR_FOLLOWER)", err)
        self.assertIn("0 records are written, 1 that were read are not", err)

    def test_batches_too_large_are_halved(self):
        self.fail = [10]
        self.produce("".join(f"{i}\n" for i in range(5)), "-p", "0")
        self.assertEqual(self.log[0], [b"0", b"1", b"2", b"3", b"4"])
        self.assertEqual(self.sequences, [(0, 0, 5, 1000), (0, 0, 2, 1000), (0, 2, 3, 1000)])
        self.fail = [10] * 10
        self.assertIn("larger than the topic's max.message.bytes", self.produce("a\n", "-p", "0", status=1))

    def test_acks(self):
        self.produce("a\n", "-p", "0", "--acks", "1")
        self.assertEqual(self.sequences[-1], (0, -1, 1, -1))
        self.assertEqual([r[2:4] for r in self.fake.requests[PRODUCE]], [i16(1)])

    def test_an_answer_without_an_answer(self):
        self.fake.answer[PRODUCE] = lambda r: produce_answer("t", {77: 0})
        self.assertIn("are not or may not be", self.produce("a\n", "-p", "0", status=1, timeout="1"))

    # ------------------------------------------------------------ consume

    def serve(self, answers, end=100):
        """The answers to fetches of partition 0 from each offset; the second partition is empty."""
        self.fake.offsets = {("t", 0): (0, end)}
        self.fake.answer[FETCH] = lambda r: self.fetch(r, answers)

    @staticmethod
    def fetch(r, answers):
        asked = fetch_request(r)
        return fetch_answer("t", {p: answers.get(o, (0, b"", [])) if p == 0 else (0, b"", []) for p, o in asked.items()})

    def consume(self, *args, status=0, timeout="30"):
        r = self.run_it("consume", "t", *args, timeout=timeout)
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stdout.decode() if status == 0 else r.stderr.decode()

    def test_offsets_before_and_behind_are_left_out(self):
        self.serve({3: (0, batch(0, [(None, b"%d" % i) for i in range(5)]) + batch(7, [(None, b"7"), (None, b"8")]), [])}, 8)
        self.assertEqual(self.consume("-e", "--from", "3", "-p", "0"), "3\n4\n7\n")

    def test_a_batch_that_is_cut(self):
        whole, cut = batch(0, [(None, b"a")]), batch(1, [(None, b"b")])
        self.serve({0: (0, whole + cut[:-1], []), 1: (0, cut, [])}, 2)
        self.assertEqual(self.consume("-e"), "a\nb\n")
        self.serve({0: (0, whole[:-1], [])}, 1)
        self.assertIn("t-0: the broker sent no whole record batch at offset 0", self.consume("-e", status=1))

    def test_transactions(self):
        log = (batch(0, [(None, b"plain")]) + batch(1, [(None, b"aborted")], TRANSACTIONAL, 7) +
               batch(2, [(None, b"committed")], TRANSACTIONAL, 8) + marker(3, 7, False) +
               batch(4, [(None, b"second")], TRANSACTIONAL, 7) + marker(5, 8, True) + marker(6, 7, True))
        self.serve({0: (0, log, [(7, 1)])}, 7)
        self.assertEqual(self.consume("-e"), "plain\naborted\ncommitted\nsecond\n")
        self.assertEqual(self.consume("-e", "--isolation", "read_committed"), "plain\ncommitted\nsecond\n")
        log = (batch(0, [(None, b"aborted")], TRANSACTIONAL, 7) + batch(1, [(None, b"outside")], 0, 7) + marker(2, 7, False))
        self.serve({0: (0, log, [(7, 0)])}, 3)
        self.assertEqual(self.consume("-e", "--isolation", "read_committed"), "outside\n")

    def test_a_leader_that_moves(self):
        answers = iter([(6, b"", []), (74, b"", []), (0, batch(0, [(None, b"a")]), [])])
        self.fake.offsets = {("t", 0): (0, 1)}
        self.fake.answer[FETCH] = lambda r: self.fetch(r, {0: next(answers)})
        self.assertEqual(self.consume("-e"), "a\n")

    def test_an_offset_that_is_gone(self):
        """Retention takes the beginning while it is read."""
        self.serve({0: (1, b"", []), 5: (0, batch(5, [(None, b"five")]), [])}, 6)
        offsets = [{("t", 0): (0, 6)}] * 2 + [{("t", 0): (5, 6)}] * 2
        own = self.fake.list_offsets

        def list_offsets(r):
            self.fake.offsets = offsets[0]
            if r.data[r.at + 4 + 1 + 4 + 3 + 4:].startswith(i32(0)):
                self.fake.offsets = offsets.pop(0) if len(offsets) > 1 else offsets[0]
            return own(r)

        self.fake.answer[2] = list_offsets
        r = self.run_it("consume", "t", "-e", "-p", "0")
        self.assertEqual((r.returncode, r.stdout), (0, b"five\n"), r.stderr)
        self.assertIn(b"t-0: offset 0 is gone, going on at 5", r.stderr)

    def test_answers_that_lie(self):
        good = batch(0, [(None, b"a"), (None, b"b")])
        for data, says in ((b"\0" * 61, "no whole record batch"), (b"x" * 200, "no whole record batch"),
                           (good[:30] + b"\xff" + good[31:], "damaged records"),
                           (batch(-5, [(None, b"a")]), "not asked for"),
                           (batch((1 << 63) - 1, [(None, b"a")]), "not asked for"),
                           (good + good, "not asked for"), (batch(0, [(None, b"a")], 7), "not known"),
                           (good[:16] + b"\1" + good[17:], "not known")):
            with self.subTest(data=data):
                self.serve({0: (0, data, [])}, 10)
                self.assertIn(says, self.consume("-e", "-p", "0", status=1))
        self.serve({5: (0, good, [])}, 10)
        self.assertIn("not asked for", self.consume("-e", "-p", "0", "--from", "5", status=1))
        self.serve({0: (29, b"", [])}, 10)
        self.assertIn("not allowed on this topic", self.consume("-e", "-p", "0", status=1))

    def test_answers_for_nobody(self):
        """Partitions and topics that were not asked for; then none at all, until time is up."""
        self.fake.offsets = {("t", 0): (0, 1)}
        self.fake.answer[FETCH] = lambda r: (fetch_answer("t", {9: (0, batch(0, [(None, b"x")]), [])}) if fetch_request(r)
                                             else b"")
        self.assertIn("t-0: it has no leader yet", self.consume("-e", "-p", "0", status=1, timeout="1"))


if __name__ == "__main__":
    main()
