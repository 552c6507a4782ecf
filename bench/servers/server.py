"""What every server has: a directory and a port of its own, a process that is ended by its id."""
import os
import shutil
import signal
import subprocess
import sys
import time

from servers.process import free_port

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # bench/
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
import calls  # pylint: disable=wrong-import-position
import kafka  # pylint: disable=wrong-import-position

Closed = kafka.Closed  # the server closed the connection
START_S = 180
SETTING = 'log.segment.delete.delay.ms=1000'  # deleted topics do not pile up between rows


class ServerFailed(Exception):
    pass


class Server:
    """What the rows use of each of them."""
    has_topics = True

    def __init__(self, directory):
        self.directory = os.path.join(directory, self.name)
        self.process = None
        self.port = free_port()

    @property
    def pid(self):
        return self.process.pid

    def command(self):
        raise NotImplementedError

    def format(self):
        """What must be done to an empty directory before the first start."""

    def spawn(self):
        """Runs it, without waiting."""
        os.makedirs(self.directory, exist_ok=True)
        with open(os.path.join(self.directory, 'stderr'), 'ab') as err, \
                open(os.path.join(self.directory, 'stdout'), 'wb') as out:
            self.process = subprocess.Popen(self.command(), stdout=out, stderr=err,
                                            stdin=subprocess.DEVNULL)

    def wait(self, check, timeout_s=START_S):
        """Polls until check(connection) is true; what stands in its way until then is no error."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise ServerFailed('%s ended with %d:\n%s' % (self.name, self.process.returncode, self.log()))
            try:
                with self.connect() as c:
                    while not check(c):
                        if time.monotonic() > end:
                            break
                        time.sleep(0.0002)
                    else:
                        return
            except (OSError, Closed):
                time.sleep(0.0002)
        raise ServerFailed('%s is not ready:\n%s' % (self.name, self.log()))

    def start(self):
        self.format()
        self.spawn()
        self.wait(answers)
        return self

    def log(self):
        with open(os.path.join(self.directory, 'stderr'), 'rb') as f:
            return f.read().decode(errors='replace')[-2000:]

    def connect(self, timeout_s=120):
        return kafka.Connection(self.port, timeout_s)

    def create(self, topic, partitions=1, **configs):
        """configs: names with _ for the dot."""
        configs = {k.replace('_', '.'): v for k, v in configs.items()}
        with self.connect() as c:
            answer = calls.create(c, topic, partitions, configs)
            if answer['ErrorCode'] != 0:
                raise ServerFailed('%s: create %s: %s' % (self.name, topic, answer))
            end = time.monotonic() + START_S
            while not led(c, topic, partitions):
                if time.monotonic() > end:
                    raise ServerFailed('%s: %s has no leaders' % (self.name, topic))
                time.sleep(0.02)

    def delete(self, topic):
        """Returns when its bytes are gone."""
        with self.connect() as c:
            answer = c.ask('DeleteTopics', 5, TopicNames=[topic], TimeoutMs=30000)
            if answer['Responses'][0]['ErrorCode'] != 0:
                raise ServerFailed('%s: delete %s: %s' % (self.name, topic, answer))
        end = time.monotonic() + START_S
        while any(d.startswith(topic) for d in os.listdir(self.data())):
            if time.monotonic() > end:
                raise ServerFailed('%s: the files of %s stay' % (self.name, topic))
            time.sleep(0.1)

    def data(self):
        return os.path.join(self.directory, 'data')

    def stop(self, how=signal.SIGTERM):
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def remove(self):
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)


def answers(c):
    return c.ask('ApiVersions', 0)['ErrorCode'] == 0


def led(c, topic, partitions):
    """Every partition has a leader that answers for it."""
    found = calls.metadata(c, [topic])['Topics'][0]
    if found['ErrorCode'] != 0 or len(found['Partitions']) != partitions or \
            any(p['ErrorCode'] != 0 for p in found['Partitions']):
        return False
    answer = c.ask('ListOffsets', 7, ReplicaId=-1, Topics=[{'Name': topic, 'Partitions': [
        {'PartitionIndex': i, 'Timestamp': calls.LATEST} for i in range(partitions)]}])
    return all(p['ErrorCode'] == 0 for p in answer['Topics'][0]['Partitions'])
