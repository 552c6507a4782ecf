#!/usr/bin/env python3
"""dohle configs and dohle cluster: against brokers that are played, and a Dohle.

  test_configs.py PROGRAM
"""
import json
import socket

from case import Case, main
from fake import (DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, METADATA, Fake, array, i16, i32, i8, text)

TOPIC, BROKER, GROUP = 2, 4, 32


class Configs(Case):
    def setUp(self):
        super().setUp()
        self.fake = Fake(2)
        self.addCleanup(self.fake.__exit__)
        # name, value, read-only, source, sensitive
        self.configs = [("z.last", "1", 0, 5, 0), ("a.first", "x,y", 0, 1, 0), ("b.secret", None, 1, 4, 1),
                        ("c.cluster", "2", 0, 3, 0), ("d.null", None, 0, 2, 0)]
        self.asked, self.changes = [], []
        self.fake.answer[DESCRIBE_CONFIGS] = self.describe_configs
        self.fake.answer[INCREMENTAL_ALTER_CONFIGS] = self.alter

    def run_it(self, *args, status=0):
        r = self.run_dohle(*args, "-b", self.fake.address)
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stdout if status == 0 else r.stderr

    def describe_configs(self, r):
        _, kind, name, keys = r.i32(), r.i8(), r.text(), r.i32()
        self.asked.append((kind, name, keys, self.fake.asked[DESCRIBE_CONFIGS][-1]))
        return i32(0) + array([i16(3 if name == "nosuch" else 0) + text(None) + i8(kind) + text(name) + array(
            [text(k) + text(v) + i8(r_) + i8(s) + i8(h) + array([]) for k, v, r_, s, h in self.configs])])

    def alter(self, r):
        _, kind, name = r.i32(), r.i8(), r.text()
        self.changes.append((kind, name, r.array(lambda: (r.text(), r.i8(), r.text())),
                             self.fake.asked[INCREMENTAL_ALTER_CONFIGS][-1]))
        return i32(0) + array([i16(40 if name == "bad" else 0) + text("not so") + i8(kind) + text(name)])

    def test_describe(self):
        self.assertEqual(self.run_it("configs", "describe", "topic", "t"),
                         "KEY        VALUE     SOURCE\n"
                         "a.first    x,y       topic\n"
                         "b.secret   (hidden)  static   read-only\n"
                         "c.cluster  2         brokers\n"
                         "d.null     (none)    broker\n")
        self.assertEqual(self.run_it("configs", "describe", "topic", "t", "--all").splitlines()[-1].split(),
                         ["z.last", "1", "default"])
        listed = json.loads(self.run_it("configs", "describe", "topic", "t", "--json"))
        self.assertEqual(listed[1], {"key": "b.secret", "value": None, "source": "static", "read_only": True,
                                     "sensitive": True})
        self.assertEqual(len(listed), 4)

    def test_get(self):
        self.assertEqual(self.run_it("configs", "get", "topic", "t", "a.first", "z.last"), "x,y\n1\n")
        r = self.run_dohle("configs", "get", "topic", "t", "nosuch", "a.first", "b.secret", "-b", self.fake.address)
        self.assertEqual((r.returncode, r.stdout), (1, "x,y\n"))
        self.assertEqual(r.stderr, "dohle: no key nosuch\ndohle: the value of b.secret is secret\n")

    def test_who_is_asked(self):
        """A broker about itself, any about all else."""
        for args, want in ((["topic", "t"], (TOPIC, "t", -1, 1)), (["broker", "2"], (BROKER, "2", -1, 2)),
                           (["broker", "default"], (BROKER, "", -1, 1)), (["group", "g"], (GROUP, "g", -1, 1))):
            self.run_it("configs", "describe", *args)
            self.assertEqual(self.asked[-1], want)
        self.assertIn("broker 9: the cluster has no such broker", self.run_it("configs", "describe", "broker", "9", status=1))
        self.assertIn("topic nosuch: no such topic", self.run_it("configs", "describe", "topic", "nosuch", status=1))

    def test_set_and_unset(self):
        self.assertEqual(self.run_it("configs", "set", "topic", "t", "a=b=c", "d="), "altered topic t\n")
        self.assertEqual(self.run_it("configs", "unset", "broker", "2", "a", "b"), "altered broker 2\n")
        self.assertEqual(self.run_it("configs", "set", "broker", "default", "a=1"), "altered broker default\n")
        self.assertEqual(self.changes, [(TOPIC, "t", [("a", 0, "b=c"), ("d", 0, "")], 1),
                                        (BROKER, "2", [("a", 1, None), ("b", 1, None)], 2), (BROKER, "", [("a", 0, "1")], 1)])
        self.assertEqual(self.run_it("configs", "set", "topic", "bad", "a=1", status=1),
                         "dohle: topic bad: not so (INVALID_CONFIG)\n")

    def test_mistakes(self):
        for args, says in ((["describe", "topic"], "a type or NAME is missing"), (["describe", "topik", "t"], "topic, broker or group"),
                           (["get", "topic", "t"], "KEY is missing"), (["set", "topic", "t", "k"], "KEY=VALUE, not k"),
                           (["set", "topic", "t", "=v"], "KEY=VALUE, not =v"), (["unset", "topic", "t", ""], "KEY, not ")):
            with self.subTest(args=args):
                err = self.run_it("configs", *args, status=2)
                self.assertIn(says, err.splitlines()[0])
                self.assertEqual(err.splitlines()[1], f"Try 'dohle configs {args[0]} --help'.")


class Cluster(Case):
    def cluster(self, f, *args, status=0):
        r = self.run_dohle("cluster", *args, "-b", f if isinstance(f, str) else f.address)
        self.assertEqual((r.returncode, r.stderr), (status, ""))
        return r.stdout

    def test_of_a_dohle(self):
        p = self.start("--data", self.data, "--port", "0")
        _, port = self.ready(p)
        out = self.cluster(f"127.0.0.1:{port}", "info")
        self.assertRegex(out, r"^cluster     \S{22}\ncontroller  1\n(feature     \S+=\d+\n)+\n"
                              r"ID  HOST        PORT  RACK  STATE\n 1  127\.0\.0\.1 +\d+  -     answers\n$")
        self.assertIn("\nfeature     metadata.version=", out)
        info = json.loads(self.cluster(f"127.0.0.1:{port}", "info", "--json"))
        broker = info["brokers"][0]
        self.assertEqual((info["controller"], broker["id"], broker["port"], broker["answers"]), (1, 1, port, True))
        self.assertIn({"key": 18, "name": "ApiVersions", "min": 0, "max": 5},
                      [{**a, "max": 5} if a["key"] == 18 else a for a in broker["apis"]])
        self.assertEqual(self.cluster(f"127.0.0.1:{port}", "health"),
                         "brokers     1 of 1 answer\ncontroller  1\n"
                         "partitions  0, 0 without a leader, 0 with replicas out of sync\nhealth      well\n")
        self.assertEqual(self.stop(p)[0], 0)

    def test_health(self):
        with Fake(2) as f:
            f.topics["t"] = {0: 1, 1: 2}
            self.assertTrue(json.loads(self.cluster(f, "health", "--json"))["well"])
            f.topics["t"][1] = -1
            out = self.cluster(f, "health", status=1)
            self.assertIn("partitions  2, 1 without a leader, 0 with", out)
            self.assertIn("health      not well", out)
            f.topics["t"][1] = 77  # a broker that nobody knows
            self.assertIn("1 without a leader", self.cluster(f, "health", status=1))

    def test_health_out_of_sync(self):
        with Fake(1) as f:
            f.topics["t"] = {0: 1}
            own = f.metadata
            f.answer[METADATA] = lambda r: own(r).replace(array([i32(1)]) * 2, array([i32(1), i32(2)]) + array([i32(1)]))
            health = json.loads(self.cluster(f, "health", "--json", status=1))
            self.assertEqual((health["well"], health["partitions_out_of_sync"]), (False, 1))

    def test_a_broker_that_is_away(self):
        with Fake(2) as f:
            f.nodes[1].stop()
            self.assertIn("1 of 2 answer", self.cluster(f, "health", status=1))
            rows = self.cluster(f, "info").splitlines()[-2:]
            self.assertEqual([" ".join(r.split()[4:]) for r in rows], ["answers", "does not answer"])

    def test_nobody(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            r = self.run_dohle("cluster", "health", "-b", "127.0.0.1:%d" % s.getsockname()[1])
        self.assertEqual((r.returncode, r.stdout), (1, ""))


if __name__ == "__main__":
    main()
