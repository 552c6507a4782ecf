"""Three nodes of one kind, each broker and controller: the processes of compat/cluster, without its proxy."""
import contextlib
import os
import sys
import time

from rows.ready import fresh
from servers.process import cpu_seconds, memory_mb
from servers.server import ROOT, ServerFailed

sys.path.insert(0, os.path.join(ROOT, 'compat', 'cluster'))
import three as compat  # pylint: disable=wrong-import-position
import node as nodes_of  # pylint: disable=wrong-import-position

NotSettled = compat.NotSettled
# What three nodes need to hold three replicas; all else is each kind's default.
SETTINGS = {
    'default.replication.factor': 3, 'min.insync.replicas': 2, 'offsets.topic.replication.factor': 3,
    'transaction.state.log.replication.factor': 3, 'transaction.state.log.min.isr': 2,
    'share.coordinator.state.topic.replication.factor': 3, 'share.coordinator.state.topic.min.isr': 2,
}
SETTLE_S = 300
LEAST_S = 2  # of a run: answers come after two followers' fetches


class Target:
    """One node as bench-load wants it. CPU time is taken of all three, by the row."""

    def __init__(self, name, node):
        self.name, self.port, self.pid = name, node.port, node.pid


class Three:
    def __init__(self, kind, heap_mb):
        """kind: a server that is not started, of the kind that the nodes are."""
        self.name = kind.name

        def make(node_id, directory, cluster_id):
            if kind.name == 'Kafka':
                java = kind.java(['-Xms%dM' % heap_mb, '-Xmx%dM' % heap_mb], 'class')[:-1]
                return nodes_of.KafkaNode(node_id, directory, cluster_id, java)
            return nodes_of.DohleNode(node_id, directory, cluster_id, kind.program)

        self.cluster = compat.Cluster(os.path.join(kind.directory, 'nodes'), make, SETTINGS, proxied=False)

    @property
    def nodes(self):
        return self.cluster.nodes

    def cpu(self):
        return sum(cpu_seconds(n.pid) for n in self.nodes.values())

    def memory_mb(self):
        return sum(memory_mb(n.pid) for n in self.nodes.values())

    def settle(self):
        self.cluster.settle(SETTLE_S)

    def create(self, topic):
        self.cluster.create(topic, 1)
        self.settle()

    def leader(self, topic):
        return self.nodes[self.cluster.leaders()[topic, 0]]

    def controller(self):
        return self.nodes[self.cluster.quorum()[0]]

    def load(self, bench, topic, **options):
        """Produce with acks=all into the topic's one partition; the CPU time is that of all nodes."""
        options.setdefault('run', max(bench.run_s, LEAST_S))
        target = Target(self.name, self.leader(topic))
        before = self.cpu()
        r = bench.load('produce', target, topic=topic, acks=-1, warm=0, **options)
        r['broker_cpu_seconds'] = self.cpu() - before
        return r

    def warm_up(self, bench, topic):
        """Kafka's compilers get their time; Dohle has none."""
        seconds = 1 if bench.quick or self.name != 'Kafka' else 20
        self.load(bench, topic, run=seconds)


@contextlib.contextmanager
def three(server, bench, heap_mb=256):
    """A cluster of the server's kind, from nothing; nothing stays of it."""
    kind = fresh(server, bench)
    cluster = None
    try:
        cluster = Three(kind, heap_mb)
        cluster.cluster.start()
        yield cluster
    except NotSettled as e:
        raise ServerFailed('three nodes of %s: %s' % (server.name, e)) from e
    finally:
        if cluster is not None:
            cluster.cluster.close()
        kind.remove()


def until(what, why, timeout_s=SETTLE_S, poll_s=0.005):
    """Seconds until it is true; an error on the way is as good as not true."""
    begin = time.monotonic()
    while True:
        try:
            if what():
                return time.monotonic() - begin
        except (NotSettled, OSError, compat.kafka.Closed, KeyError):
            pass
        if time.monotonic() - begin > timeout_s:
            raise NotSettled(why)
        time.sleep(poll_s)
