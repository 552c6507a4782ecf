#!/usr/bin/env python3
"""smoke.py BENCH-LOAD BENCH-LIMIT: the load generator against the do-nothing server, for a moment. What is
counted is checked against what the server wrote, never how long it took."""
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

LOAD, LIMIT = sys.argv[1:3]


class Smoke(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix='dohle-bench-')
        self.addCleanup(self.directory.cleanup)
        self.files = os.path.join(self.directory.name, 'files')
        self.limit = subprocess.Popen([LIMIT, self.files, 'bench'], stdout=subprocess.PIPE)
        self.addCleanup(self.end)
        self.port = int(self.limit.stdout.readline())

    def end(self):
        self.assertIn(self.limit.poll(), (None, -signal.SIGKILL))
        self.limit.send_signal(signal.SIGTERM)
        self.limit.wait()
        self.limit.stdout.close()

    def run_load(self, *arguments):
        return subprocess.run([LOAD, *arguments, '--port', str(self.port), '--warm', '0', '--run', '60'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)

    def load(self, *arguments):
        done = self.run_load(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def batches(self, partition=0):
        """(offset, records, bytes) of each in the partition's file."""
        with open(os.path.join(self.files, '%d.log' % partition), 'rb') as f:
            data = f.read()
        at, out = 0, []
        while at < len(data):
            offset, length = struct.unpack_from('>qi', data, at)
            out.append((offset, struct.unpack_from('>i', data, at + 57)[0], length + 12))
            at += length + 12
        return out

    def test_counts_what_was_written(self):
        r = self.load('produce', '--requests', '500', '--records', '3', '--partitions', '7')
        batches = [self.batches(partition) for partition in range(7)]
        n = sum(map(len, batches))
        self.assertEqual(r['requests'], 500)
        # What was in flight at the end is answered, and not counted.
        self.assertTrue(500 <= n <= 500 + 4 * 16, n)
        self.assertEqual(r['bytes'], 500 * batches[0][0][2])
        for of_one in batches:
            self.assertIn(len(of_one), (n // 7, n // 7 + 1))
            self.assertEqual([b[:2] for b in of_one], [(3 * i, 3) for i in range(len(of_one))])

    def test_large_requests_leave_whole(self):
        """More than a socket takes at once."""
        for codec, first in (('none', 0), ('lz4', 60)):
            r = self.load('produce', '--requests', '60', '--records', '1000', '--record-bytes', '1000',
                          '--in-flight', '4', '--connections', '1', '--codec', codec)
            batches = self.batches()
            self.assertEqual(r['bytes'], 60 * batches[-1][2])
            self.assertEqual([b[0] for b in batches], [1000 * i for i in range(len(batches))])
            self.assertGreaterEqual(len(batches), first + 60)

    def test_fetches_what_was_produced(self):
        self.load('produce', '--requests', '8', '--records', '1000', '--in-flight', '1', '--connections', '1')
        size = self.batches()[0][2]
        fetch = ('fetch', '--requests', '100', '--records', '1000', '--batches', '8', '--in-flight', '2')
        r = self.load(*fetch, '--batch-bytes', str(size))
        self.assertEqual(r['bytes'], 100 * size)
        # Another size, or offsets that are not there, are seen.
        self.assertEqual(self.run_load(*fetch, '--batch-bytes', str(size - 1)).returncode, 1)
        self.assertEqual(self.run_load('fetch', '--requests', '100', '--records', '999', '--batches', '8',
                                       '--batch-bytes', str(size)).returncode, 1)

    def test_another_topic_is_an_error(self):
        done = self.run_load('produce', '--requests', '10', '--topic', 'other')
        self.assertEqual(done.returncode, 1)
        self.assertIn(b'another partition', done.stderr)

    def test_api_versions_in_an_open_loop(self):
        r = self.load('api-versions', '--requests', '100', '--rate', '5000')
        self.assertEqual(r['requests'], 100)
        self.assertGreater(r['p50_us'], 0)
        self.assertGreaterEqual(r['max_us'], r['p999_us'] * 0.98)

    def test_idle_connections_had_an_answer(self):
        idle = subprocess.Popen([LOAD, 'idle', '--port', str(self.port), '--connections', '50'],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(idle.stdout.readline(), b'ready\n')
        descriptors = len(os.listdir('/proc/%d/fd' % self.limit.pid))
        idle.communicate(timeout=60)
        self.assertEqual(idle.returncode, 0)
        self.assertGreaterEqual(descriptors, 50)

    def test_a_server_that_ends_is_an_error(self):
        self.limit.kill()
        self.limit.wait()
        self.assertEqual(self.run_load('api-versions').returncode, 1)

    def test_wrong_usage(self):
        for arguments in ([], ['nothing'], ['produce'], ['produce', '--port', 'x'], ['fetch', '--port', '1']):
            done = subprocess.run([LOAD, *arguments], stderr=subprocess.DEVNULL, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, arguments)
        self.assertEqual(subprocess.run([LIMIT], stderr=subprocess.DEVNULL, timeout=60, check=False).returncode, 2)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=1)
