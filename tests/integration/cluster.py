"""Several nodes of one cluster: processes on loopback, each with a directory of its own.

Voters must name the controllers' ports before a node is started, so ports are chosen free and, when
another process takes one meanwhile, chosen anew."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import broker
import calls
import kafka

CLUSTER_ID = '4L6g3nShT-eMCtK--X86sw'
NOT_CONTROLLER = 41


def free_ports(n):
    held = [socket.socket() for _ in range(n)]
    try:
        for s in held:
            s.bind(('127.0.0.1', 0))
        return [s.getsockname()[1] for s in held]
    finally:
        for s in held:
            s.close()


class Node:
    """One process; roles as in process.roles."""

    def __init__(self, cluster, node_id, roles):
        self.cluster, self.id, self.roles = cluster, node_id, roles
        self.directory = os.path.join(cluster.directory, str(node_id))
        self.data = os.path.join(self.directory, 'data')
        self.ports_file = os.path.join(self.directory, 'ports')
        self.settings = {}
        self.port = self.controller_port = 0
        self.process = None
        os.mkdir(self.directory)

    def listeners(self):
        found = []
        if 'broker' in self.roles:
            found.append('PLAINTEXT://127.0.0.1:%d' % self.port)
        if 'controller' in self.roles:
            found.append('CONTROLLER://127.0.0.1:%d' % self.controller_port)
        return ','.join(found)

    def command(self):
        return [broker.BINARY, 'start', '--ports-file', self.ports_file] + self.options()

    def format(self, *options):
        """The status of `dohle format`."""
        command = [broker.BINARY, 'format', '--cluster-id', CLUSTER_ID] + self.options()
        return subprocess.run(command + list(options), stdout=subprocess.DEVNULL,
                              check=False).returncode

    def options(self):
        settings = {'node.id': self.id, 'process.roles': self.roles, 'cluster.id': CLUSTER_ID,
                    'listeners': self.listeners(), 'controller.listener.names': 'CONTROLLER',
                    'controller.quorum.voters': self.cluster.voters(),
                    'dohle.memory.max.bytes': broker.MEMORY,
                    **self.cluster.settings, **self.settings}
        command = ['--data', self.data]
        for key, value in settings.items():
            if value is not None:
                command += ['--set', '%s=%s' % (key, value)]
        return command

    def launch(self):
        if os.path.exists(self.ports_file):
            os.unlink(self.ports_file)
        with open(os.path.join(self.directory, 'stderr'), 'ab') as stderr:
            self.process = subprocess.Popen(self.command(), stderr=stderr,
                                            stdout=subprocess.DEVNULL)
        return self

    def ended(self):
        return self.process is None or self.process.poll() is not None

    def ready(self):
        if self.ended():
            raise RuntimeError('node %d ended with %s: %s' % (
                self.id, self.process.returncode, self.log()[-500:]))
        return os.path.exists(self.ports_file)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def empty(self):
        """What a new disk has; of a node that is ended."""
        shutil.rmtree(self.data)

    def term(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process

    def connect(self, **options):
        return kafka.Connection(self.port, **options)

    def log(self):
        with open(os.path.join(self.directory, 'stderr'), 'rb') as f:
            return f.read().decode(errors='replace')


class Cluster:
    def __init__(self, roles=('broker,controller',) * 3, settings=None):
        self.directory = tempfile.mkdtemp(prefix='dohle-cluster-')
        self.settings = settings or {}
        self.nodes = [Node(self, i + 1, r) for i, r in enumerate(roles)]

    def voters(self):
        return ','.join('%d@127.0.0.1:%d' % (n.id, n.controller_port) for n in self.nodes
                        if 'controller' in n.roles)

    def brokers(self):
        return [n for n in self.nodes if 'broker' in n.roles]

    def running(self):
        return [n for n in self.brokers() if not n.ended()]

    def choose_ports(self):
        ports = free_ports(2 * len(self.nodes))
        for node in self.nodes:
            node.port, node.controller_port = ports.pop(), ports.pop()

    def start(self):
        for _ in range(5):
            self.choose_ports()
            for node in self.nodes:
                node.launch()
            if self.wait_ready():
                return self
        raise RuntimeError('no free ports')

    def wait_ready(self, nodes=None, timeout_s=60):
        """False: a port was taken, all are ended."""
        end = time.monotonic() + timeout_s
        nodes = nodes or self.nodes
        while not all(n.ready() for n in nodes if not self.lost_port(n)):
            if time.monotonic() > end:
                raise RuntimeError('not ready: %s' % {n.id: n.log()[-300:] for n in nodes})
            time.sleep(0.02)
        if not any(self.lost_port(n) for n in nodes):
            return True
        self.kill()
        return False

    def lost_port(self, node):
        return node.ended() and 'is in use' in node.log()[-300:]

    def kill(self):
        for node in self.nodes:
            if not node.ended():
                node.kill()

    def close(self):
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def ask_controller(self, ask, timeout_s=30):
        """ask(connection) at one broker after the other, until it is not NOT_CONTROLLER."""
        end = time.monotonic() + timeout_s
        while True:
            for node in self.running():
                try:
                    with node.connect() as c:
                        answer = ask(c)
                        if answer['ErrorCode'] != NOT_CONTROLLER:
                            return answer
                except (OSError, kafka.Closed):
                    pass
            assert time.monotonic() < end, 'no controller'
            time.sleep(0.05)

    def create_topic(self, name, partitions=1, replication=3, configs=None):
        answer = self.ask_controller(
            lambda c: calls.create(c, name, partitions, configs, replication=replication))
        assert answer['ErrorCode'] == 0, answer

    def partition(self, topic, index=0):
        """As a running broker sees it, None when none knows it."""
        for node in self.running():
            try:
                with node.connect() as c:
                    answer = calls.metadata(c, [topic])['Topics'][0]
            except (OSError, kafka.Closed):
                continue
            for p in answer['Partitions']:
                if p['PartitionIndex'] == index:
                    return p
        return None

    def leader(self, topic, index=0):
        """A running node, or None."""
        p = self.partition(topic, index)
        led = [n for n in self.running() if p is not None and n.id == p['LeaderId']]
        return led[0] if led else None

    def produce(self, topic, index, data, timeout_s=60):
        """As a client with acks=all and retries: the offset that was acknowledged."""
        end = time.monotonic() + timeout_s
        error = None
        while time.monotonic() < end:
            node = self.leader(topic, index)
            try:
                if node is not None:
                    with node.connect(timeout_s=10) as c:
                        answer = calls.produce(c, topic, index, data)
                        error = answer['ErrorCode']
                        if error == 0:
                            return answer['BaseOffset']
            except (OSError, kafka.Closed) as e:
                error = repr(e)
            time.sleep(0.02)
        raise AssertionError('not acknowledged: %s' % error)
