"""What the tests of the command line share: the program, brokers started on free ports with a directory
of their own and ended by their id.
"""
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

DOHLE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
WAIT_S = 60  # instrumented builds on a busy machine
READY = re.compile(r"^Dohle (\d+\.\d+\.\d+) ready on (\S+):(\d+) in \d+ ms\n$")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="dohle-cli-")
        self.data = self.dir + "/data"
        self.ports = self.dir + "/ports"
        self.processes = []

    def tearDown(self):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
            p.wait()
            for stream in (p.stdin, p.stdout, p.stderr):
                if stream:
                    stream.close()
        shutil.rmtree(self.dir)

    def run_dohle(self, *args, env=None):
        return subprocess.run([DOHLE, *args], capture_output=True, text=True, timeout=WAIT_S, cwd=self.dir,
                              env={**os.environ, **(env or {})})

    def start(self, *args, env=None):
        p = subprocess.Popen([DOHLE, "start", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             cwd=self.dir, env={**os.environ, **(env or {})})
        self.processes.append(p)
        return p

    def ready(self, p):
        """(host, port) of the ready line."""
        readable, _, _ = select.select([p.stdout], [], [], WAIT_S)
        line = p.stdout.readline() if readable else ""
        if not line:
            p.kill()
            self.fail(f"not ready: {p.communicate()[1]}")
        m = READY.match(line)
        self.assertIsNotNone(m, line)
        return m[2], int(m[3])

    def stop(self, p, number=signal.SIGTERM):
        """(status, rest of stdout, stderr)"""
        p.send_signal(number)
        out, err = p.communicate(timeout=WAIT_S)
        return p.returncode, out, err

    def wait_for(self, what):
        deadline = time.monotonic() + WAIT_S
        while not what():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def write(self, name, text):
        with open(f"{self.dir}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
        return f"{self.dir}/{name}"


def main():
    sys.argv.pop(1)
    unittest.main(module="__main__")
