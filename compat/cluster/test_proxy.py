#!/usr/bin/env python3
"""The proxy holds, slows and breaks what it is told to, by who dialled, and nothing else. Processes dial: it knows
them by their ids."""

import os
import select
import socket
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from node import free_ports  # noqa: E402
from proxy import Proxy  # noqa: E402

DIALLER = """
import socket, sys
sys.stdin.readline()
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for line in sys.stdin:
    if line == "send\\n":
        s.sendall(b"x")
    elif line == "take\\n":
        print(len(s.recv(1)), flush=True)
"""
SOON_S, BOUND_S = 0.3, 20


class Peer:
    """A process that dials, and the end that it reached."""

    def __init__(self, test, node):
        self.process = subprocess.Popen(
            [sys.executable, "-c", DIALLER, str(test.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        test.addCleanup(self.end)
        test.pids[self.process.pid] = node  # before it dials
        self.tell("dial")
        self.reached, _ = test.listener.accept()
        test.addCleanup(self.reached.close)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def arrives(self, within_s=BOUND_S):
        """How many bytes come of one that is sent; 0: the end; None: nothing comes."""
        self.tell("send")
        return self.comes(within_s)

    def comes(self, within_s=BOUND_S):
        self.reached.settimeout(within_s)
        try:
            return len(self.reached.recv(1))
        except socket.timeout:
            return None
        except ConnectionError:
            return 0

    def returns(self):
        self.reached.sendall(b"y")
        self.tell("take")
        return int(self.process.stdout.readline())


class ProxyTest(unittest.TestCase):
    """Node 3 is dialled by 1 and 2."""

    def setUp(self):
        self.pids = {}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        self.listener.settimeout(BOUND_S)
        [self.port] = free_ports(1)
        self.proxy = Proxy(lambda: self.pids)
        self.addCleanup(self.proxy.close)
        self.proxy.listen(self.port, 3, self.listener.getsockname()[1])

    def peer(self, node):
        return Peer(self, node)

    def test_passes_both_ways(self):
        one = self.peer(1)
        self.assertEqual((one.arrives(), one.returns()), (1, 1))

    def test_holds_one_way_of_one_node(self):
        one, two = self.peer(1), self.peer(2)
        self.proxy.hold((1, 3))
        self.assertIsNone(one.arrives(SOON_S))
        self.assertEqual(one.returns(), 1)
        self.assertEqual((two.arrives(), two.returns()), (1, 1))
        self.proxy.heal()
        self.assertEqual(one.comes(), 1)

    def test_holds_the_way_back(self):
        one, two = self.peer(1), self.peer(2)
        self.proxy.hold((3, 1))
        self.assertEqual(one.arrives(), 1)
        one.reached.sendall(b"y")
        one.tell("take")
        self.assertEqual(select.select([one.process.stdout], [], [], SOON_S)[0], [])
        self.assertEqual(two.returns(), 1)
        self.proxy.heal()
        self.assertEqual(one.process.stdout.readline(), "1\n")

    def test_the_end_of_a_process_is_held_too(self):
        one = self.peer(1)
        self.assertEqual(one.arrives(), 1)
        self.proxy.hold((1, 3))
        one.process.kill()
        self.assertIsNone(one.comes(SOON_S))
        self.proxy.heal()
        self.assertEqual(one.comes(), 0)

    def test_slows(self):
        one, two = self.peer(1), self.peer(2)
        self.proxy.slow(SOON_S, (1, 3))
        begin = time.monotonic()
        self.assertEqual(one.arrives(), 1)
        self.assertGreaterEqual(time.monotonic() - begin, SOON_S)
        self.assertEqual(two.arrives(), 1)

    def test_breaks_the_connections_of_two(self):
        one, two = self.peer(1), self.peer(2)
        self.proxy.cut(1, 3)
        self.assertEqual(one.comes(), 0)
        self.assertEqual(two.arrives(), 1)
        self.assertEqual(self.peer(1).arrives(), 1)

    def test_nobody_else_gets_through(self):
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.settimeout(BOUND_S)
            try:
                self.assertEqual(s.recv(1), b"")
            except ConnectionError:
                pass


if __name__ == "__main__":
    unittest.main()
