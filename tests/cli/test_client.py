#!/usr/bin/env python3
"""What all client commands share: usage, where brokers are, brokers that are not there, hang up, lie or
send nonsense.

  test_client.py PROGRAM
"""
import concurrent.futures
import random
import socket
import threading

import fake
from case import Case, main

COMMANDS = {"produce": [], "consume": [], "groups": ["list", "describe", "reset", "delete"],
            "configs": ["describe", "get", "set", "unset"], "cluster": ["info", "health"],
            "topics": ["list", "create", "describe", "delete", "add-partitions", "trim", "alter"]}


class Usage(Case):
    def test_every_verb_has_help(self):
        for command, verbs in COMMANDS.items():
            if verbs:
                r = self.run_dohle(command, "--help")
                self.assertEqual((r.returncode, r.stderr), (0, ""))
                self.assertEqual(self.run_dohle("help", command).stdout, r.stdout)
            for verb in verbs or [None]:
                words = [command] + ([verb] if verb else [])
                if verb:
                    self.assertIn(f"\n  {verb} ", r.stdout)
                h = self.run_dohle(*words, "--help")
                self.assertEqual((h.returncode, h.stderr), (0, ""))
                self.assertTrue(h.stdout.startswith("Usage: dohle " + " ".join(words)), h.stdout)
                for option in ("--brokers", "--timeout", "--help"):
                    self.assertIn(option, h.stdout)
                self.assertLess(max(map(len, h.stdout.splitlines())), 100)

    def mistake(self, args, what, hint):
        with self.subTest(args=args):
            r = self.run_dohle(*args)
            self.assertEqual((r.returncode, r.stdout), (2, ""), r.stderr)
            lines = r.stderr.splitlines()
            self.assertEqual(len(lines), 2, r.stderr)
            self.assertIn(what, lines[0])
            self.assertEqual(lines[1], f"Try 'dohle {hint} --help'.")

    def test_mistakes(self):
        self.mistake(["topics"], "a verb is missing: list, create", "topics")
        self.mistake(["topics", "lisst"], "unknown verb lisst", "topics")
        self.mistake(["topics", "--nonsense"], "unknown option --nonsense", "topics")
        self.mistake(["topics", "list", "x"], "unexpected argument x", "topics list")
        self.mistake(["topics", "list", "--timeout", "0"], "--timeout needs a number from 1", "topics list")
        for brokers in ("", ",", "host:0", "host:65536", "host:x", ":9092", "[::1", "[::1]x", "a:1,b:x", "h" * 300):
            self.mistake(["topics", "list", "-b", brokers], "HOST[:PORT]", "topics list")


class Brokers(Case):
    def failed(self, *args, says, env=None):
        r = self.run_dohle(*args, env=env)
        self.assertEqual((r.returncode, r.stdout), (1, ""), r.stderr)
        self.assertTrue(all(line.startswith("dohle: ") for line in r.stderr.splitlines()), r.stderr)
        self.assertIn(says, r.stderr)
        return r.stderr

    def closed_port(self):
        """At 127.0.0.1, and nobody else's."""
        s = socket.socket()
        self.addCleanup(s.close)
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]

    def test_nobody_there(self):
        port = self.closed_port()
        err = self.failed("topics", "list", "-b", f"127.0.0.1:{port}", says=f"no broker at 127.0.0.1:{port}: ")
        self.assertIn("Is it running?", err)
        other = self.closed_port()
        err = self.failed("topics", "list", "-b", f"127.0.0.1:{port},,127.0.0.1:{other}", says=f":{port}: ")
        self.assertIn(f":{other}: ", err)
        self.failed("topics", "list", "-b", "no-such-name.invalid", says="no broker at no-such-name.invalid:9092: ")

    def test_where_brokers_are(self):
        with fake.Fake() as f:
            f.topics["t"] = {0: 1}
            for args, env in ((["-b", f.address], {}), ([], {"DOHLE_BROKERS": f.address}),
                              (["--brokers=" + f.address], {"DOHLE_BROKERS": "nowhere:1"}),
                              (["-b", f"127.0.0.1:{self.closed_port()},{f.address}"], {})):
                r = self.run_dohle("topics", "list", *args, env=env)
                self.assertEqual((r.returncode, r.stderr), (0, ""))
                self.assertIn("t ", r.stdout)

    def silent(self, behave):
        """A port whose connections are given to behave()."""
        s = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(s.close)

        def accept():
            while True:
                try:
                    behave(s.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        return f"127.0.0.1:{s.getsockname()[1]}"

    def test_those_that_are_no_brokers(self):
        kept = []
        where = self.silent(kept.append)
        self.failed("topics", "list", "-b", where, "--timeout", "1", says=f"no broker answers at {where} in time")
        where = self.silent(lambda c: c.close())
        self.failed("topics", "list", "-b", where, says=f"no broker at {where}: ")
        where = self.silent(lambda c: c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n") or kept.append(c))
        self.failed("topics", "list", "-b", where, says=f"{where} does not speak Kafka's protocol")

    def test_one_that_serves_little(self):
        with fake.Fake() as f:
            f.versions = lambda version: fake.i16(0 if version == 0 else 35) + fake.array(
                [fake.i16(fake.METADATA) + fake.i16(0) + fake.i16(8)])
            self.failed("topics", "create", "t", "-b", f.address, says="does not serve CreateTopics")

    def test_one_that_hangs_up_when_asked(self):
        with fake.Fake() as f:
            f.answer[fake.METADATA] = lambda r: None
            self.failed("topics", "list", "-b", f.address, says="ended the connection while it was asked for Metadata")

    def test_metadata_that_cannot_be(self):
        """Names, ids and ports beyond sense are left out; control characters do not reach the terminal."""
        with fake.Fake() as f:
            def metadata(r):
                i16, i32, text, array = fake.i16, fake.i32, fake.text, fake.array
                port = f.nodes[0].port
                brokers = [i32(n) + text(h) + i32(p) + text(None) for n, h, p in
                           ((1, "127.0.0.1", port), (1, "127.0.0.1", port), (-5, "x", 1), (2, "", 1), (3, "x", 0),
                            (4, "x", 65536), (5, "h" * 300, 1), (6, "a\0b", 1), (2147483647, "x", 1))]
                part = [i16(0) + i32(p) + i32(leader) + i32(-9) + array([i32(-1)]) * 2 + array([])
                        for p, leader in ((5, 1), (5, 1), (-1, 1), (2147483647, 77), (0, -1))]
                topics = [i16(0) + text(n) + b"\0" + array(part) + i32(0) for n in ("b\x1b[2J", "a", "a", "")]
                return i32(0) + array(brokers) + text(None) + i32(99) + array(topics) + i32(0)

            f.answer[fake.METADATA] = metadata
            r = self.run_dohle("topics", "list", "-b", f.address)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertEqual([line.split() for line in r.stdout.splitlines()[1:]], [["a", "3", "1"], ["b?[2J", "3", "1"]])


    def test_two_ids_at_one_address(self):
        with fake.Fake() as f:
            own = f.metadata
            broker = fake.text("127.0.0.1") + fake.i32(f.nodes[0].port) + fake.text(None)

            def metadata(r):
                answer = own(r)
                return answer[:4] + fake.array([fake.i32(1) + broker, fake.i32(2) + broker]) + answer[8 + 4 + len(broker):]

            f.answer[fake.METADATA] = metadata
            f.topics["t"] = {0: 1, 1: 2}
            r = self.run_dohle("cluster", "info", "-b", f.address)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertEqual([line.split()[0] for line in r.stdout.splitlines()[-2:]], ["1", "2"])
            r = self.run_dohle("cluster", "health", "-b", f.address)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            r = self.run_dohle("topics", "describe", "t", "-b", f.address)
            self.assertEqual([line.split()[-2:] for line in r.stdout.splitlines()[-2:]], [["0", "0"]] * 2)


class Noise(Case):
    """A true broker behind a line that flips bytes of its answers: whatever arrives, a command ends by itself,
    with an exit status of its own."""
    RUNS = 100

    def commands(self):
        return [["topics", "list"], ["topics", "describe", "t"], ["topics", "create", "new"],
                ["topics", "list", "--json"], ["topics", "describe", "t", "--json"], ["produce", "t", "lines"],
                ["consume", "t", "-e"], ["consume", "t", "-e", "--json"], ["consume", "t", "-n", "5"],
                ["consume", "t", "-e", "-g", "g"], ["cluster", "info"],
                ["cluster", "health", "--json"], ["groups", "list"], ["groups", "describe", "g"],
                ["groups", "reset", "g", "--to", "latest", "-t", "t", "--execute"],
                ["configs", "describe", "topic", "t"], ["configs", "set", "topic", "t", "retention.ms=1"]]

    def damage(self, data):
        if self.quiet:
            return data
        data = bytearray(data)
        for _ in range(self.rng.choice((0, 1, 1, 2, 20))):
            # Mostly in what is decoded first: lengths, counts, codes.
            data[min(int(self.rng.expovariate(1 / 40)), len(data) - 1)] = self.rng.choice((0, 1, 0x7f, 0x80, 0xff,
                                                                                           self.rng.randrange(256)))
        return bytes(data)

    def carry(self, client, port):
        broker = socket.create_connection(("127.0.0.1", port))

        def there():
            try:
                while data := client.recv(1 << 16):
                    broker.sendall(data)
            except OSError:
                pass
            broker.close()

        threading.Thread(target=there, daemon=True).start()
        try:
            while data := broker.recv(1 << 16):
                client.sendall(self.damage(data))
        except OSError:
            pass
        client.close()

    def line(self, listener):
        while True:
            try:
                client = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client, self.port), daemon=True).start()

    def test_damaged_answers(self):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}", flush=True)
        self.rng = random.Random(seed)
        listener = socket.create_server(("127.0.0.1", 0))
        front = listener.getsockname()[1]
        self.addCleanup(listener.close)
        p = self.start("--data", self.data, "--port", "0", "--set",
                       f"advertised.listeners=PLAINTEXT://127.0.0.1:{front}")
        self.port = self.ready(p)[1]
        threading.Thread(target=self.line, args=(listener,), daemon=True).start()
        self.quiet = True
        self.write("lines", "line\n" * 100)
        self.assertEqual(self.run_dohle("topics", "create", "t", "-b", f"127.0.0.1:{self.port}").returncode, 0)
        self.assertEqual(self.run_dohle("produce", "t", "lines", "-z", "lz4", "-b", f"127.0.0.1:{self.port}").returncode, 0)
        self.quiet = False
        commands = self.commands()

        def run(i):
            return commands[i % len(commands)], self.run_dohle(*commands[i % len(commands)], "-b", f"127.0.0.1:{front}",
                                                               "--timeout", "1")

        statuses = {0: 0, 1: 0}
        with concurrent.futures.ThreadPoolExecutor(8) as pool:  # most of them wait
            for args, r in pool.map(run, range(self.RUNS)):
                self.assertIn(r.returncode, (0, 1), (args, r.stderr))
                self.assertNotIn("Sanitizer", r.stderr)
                statuses[r.returncode] += 1
        self.assertTrue(all(statuses.values()), statuses)  # the damage is neither fatal always nor never
        self.assertEqual(self.stop(p)[0], 0)


if __name__ == "__main__":
    main()
