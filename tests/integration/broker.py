"""The broker's process: started on a free port with a directory of its own, ended by its id."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import kafka

BINARY = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ''
# Sanitizers multiply memory: what is used is printed but not judged.
SANITIZED = os.environ.get('DOHLE_SANITIZED', '') not in ('', '0')
MB = 1 << 20
MEMORY = 64 * MB


def raise_fd_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Broker:
    def __init__(self, settings=None, directory=None, prefix=(), memory=MEMORY):
        self.directory = directory or tempfile.mkdtemp(prefix='dohle-it-')
        self.data = os.path.join(self.directory, 'data')
        self.settings = {'dohle.memory.max.bytes': memory, **(settings or {})}
        self.memory = memory
        self.prefix = list(prefix)
        self.process = None
        self.port = 0  # of the first listener
        self.ports = {}  # by listener

    def command(self, port, ports_file):
        command = self.prefix + [BINARY, 'start', '--data', self.data, '--port', str(port),
                                 '--ports-file', ports_file]
        for key, value in self.settings.items():
            command += ['--set', '%s=%s' % (key, value)]
        return command

    def start(self, timeout_s=60):
        """Waits until it is ready. The port stays the same over restarts."""
        ports_file = os.path.join(self.directory, 'ports')
        if os.path.exists(ports_file):
            os.unlink(ports_file)
        with open(os.path.join(self.directory, 'stderr'), 'ab') as stderr:
            self.process = subprocess.Popen(self.command(self.port, ports_file), stderr=stderr,
                                            stdout=subprocess.DEVNULL)
        end = time.monotonic() + timeout_s
        while not os.path.exists(ports_file):
            if self.process.poll() is not None:
                raise RuntimeError('the broker ended with %d: %s' % (self.process.returncode,
                                                                     self.log()[-500:]))
            if time.monotonic() > end:
                raise RuntimeError('the broker is not ready: %s' % self.log()[-500:])
            time.sleep(0.01)
        with open(ports_file) as f:
            self.ports = {name: int(port) for name, _, port in (line.split() for line in f)}
        self.port = next(iter(self.ports.values()))
        return self

    def run_refused(self):
        """Starts one that cannot: its status and what it says."""
        done = subprocess.run(self.command(self.port, os.path.join(self.directory, 'no-ports')),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30,
                              check=False)
        return done.returncode, done.stderr.decode()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Status of a clean stop."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def log(self):
        with open(os.path.join(self.directory, 'stderr'), 'rb') as f:
            return f.read().decode(errors='replace')

    def log_lines(self, word):
        return [line for line in self.log().splitlines() if word in line]

    def connect(self, **options):
        return kafka.Connection(self.port, **options)

    def rss(self):
        """VmRSS and its peak, in bytes."""
        found = {}
        with open('/proc/%d/status' % self.process.pid) as f:
            for line in f:
                if line.startswith(('VmRSS', 'VmHWM')):
                    found[line[:5]] = int(line.split()[1]) * 1024
        return found['VmRSS'], found['VmHWM']


class PollingTest(unittest.TestCase):
    """What comes sooner or later is waited for with a bound."""
    def poll(self, what, why='it does not come', timeout_s=30):
        end = time.monotonic() + timeout_s
        while not what():
            self.assertLess(time.monotonic(), end, why)
            time.sleep(0.01)


class BrokerTest(PollingTest):
    """One broker per test, which still serves at its end, within its memory, and stops cleanly."""
    settings = {}

    def setUp(self):
        self.broker = Broker(self.settings)
        self.addCleanup(self.broker.close)
        self.broker.start()

    def tearDown(self):
        """It stops cleanly whatever came; under sanitizers, without a report."""
        self.assertEqual(self.broker.stop(), 0, self.broker.log()[-3000:])
        for line in self.broker.log_lines('slow_turn'):
            print(line)

    def alive(self, topic='alive'):
        """A new client's record goes in and comes out."""
        with self.broker.connect() as c:
            c.create_topic(topic)
            value = b'at %d' % time.monotonic_ns()
            error, offset = c.produce(topic, 0, [value])
            self.assertEqual(error, 0)
            error, _, data = c.fetch(topic, 0, offset)
            self.assertEqual(error, 0)
            self.assertIn((offset, value), kafka.read_batches(data))

    def check_memory(self):
        rss, peak = self.broker.rss()
        print('%-44s VmRSS %5.1f MB, peak %5.1f MB, limit %d + 16 MB' %
              (self._testMethodName, rss / MB, peak / MB, self.broker.memory / MB), flush=True)
        if not SANITIZED:
            self.assertLess(peak, self.broker.memory + 16 * MB)

    def served_on(self):
        self.alive()
        self.check_memory()


def main():
    print('%s with %s' % (os.path.basename(sys.argv[0]), BINARY), flush=True)
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=1)
