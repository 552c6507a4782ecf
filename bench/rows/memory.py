"""VmRSS of a fresh server: idle, after load, with connections, with partitions."""
import contextlib
import subprocess
import time

from row import Goal, Row
from rows.ready import fresh
from servers.process import memory_mb
from servers.server import ServerFailed

BROKERS = ['Dohle', 'Kafka']
TOPIC = 'bench'


@contextlib.contextmanager
def started(server, bench):
    other = fresh(server, bench)
    try:
        yield other.start()
    finally:
        other.remove()


def settled_mb(server):
    time.sleep(1)
    return memory_mb(server.pid)


def idle(server, bench):
    with started(server, bench) as s:
        return {'mb': settled_mb(s)}


def loaded(server, bench):
    """Every shape of produce into a thousand partitions, then fetches of what is there."""
    with started(server, bench) as s:
        s.create(TOPIC, 1000)
        for records, record_bytes, codec in ((1, 100, 'none'), (100, 100, 'lz4'), (1000, 1000, 'none'),
                                             (1000, 1000, 'lz4')):
            bench.load('produce', s, topic=TOPIC, partitions=1000, acks=-1, records=records, codec=codec,
                       record_bytes=record_bytes, connections=16, in_flight=4, bytes=bench.bytes_max)
        s.create('fetched')
        r = bench.load('produce', s, topic='fetched', records=1000, record_bytes=1000, connections=1, in_flight=1,
                       warm=0, requests=100, run=60)
        bench.load('fetch', s, topic='fetched', records=1000, batches=100, batch_bytes=r['bytes'] // r['requests'],
                   connections=16, in_flight=2)
        return {'mb': settled_mb(s)}


@contextlib.contextmanager
def idle_connections(bench, server, n):
    """n connections that each had one answer."""
    p = subprocess.Popen([bench.program, 'idle', '--port', str(server.port), '--connections', str(n),
                          '--in-flight', '1'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if p.stdout.readline() != b'ready\n':
            raise ServerFailed('%s: %d connections are refused' % (server.name, n))
        yield
    finally:
        p.kill()
        p.wait()
        p.stdin.close()
        p.stdout.close()


def connections(n):
    def run(server, bench):
        with started(server, bench) as s:
            before = settled_mb(s)
            with idle_connections(bench, s, n):
                after = settled_mb(s)
            return {'mb': after, 'kb_each': (after - before) * 1024 / n}
    return run


def partitions(server, bench):
    """Ten topics of a thousand partitions, nothing in them."""
    n, topics = (1000, 1) if bench.quick else (10000, 10)
    with started(server, bench) as s:
        before = settled_mb(s)
        for i in range(topics):
            s.create('%s%d' % (TOPIC, i), n // topics)
        after = settled_mb(s)
        return {'mb': after, 'kb_each': (after - before) * 1024 / n}


ROWS = [
    Row('memory', 'idle', ['mb'], idle, servers=BROKERS, fresh=True, goals=[
        Goal('under 6 MB', lambda f: f['Dohle']['mb'], '<=', 6)]),
    Row('memory', 'after-load', ['mb'], loaded, servers=BROKERS, fresh=True, rounds=1, goals=[
        Goal('under 64 MB', lambda f: f['Dohle']['mb'], '<=', 64)]),
    Row('memory', '1000-connections', ['mb', 'kb_each'], connections(1000), servers=BROKERS, fresh=True, rounds=1, goals=[
        Goal('under 16 kB each', lambda f: f['Dohle']['kb_each'], '<=', 16)]),
    Row('memory', '10000-connections', ['mb', 'kb_each'], connections(10000), servers=BROKERS, fresh=True, rounds=1, goals=[
        Goal('under 16 kB each', lambda f: f['Dohle']['kb_each'], '<=', 16)]),
    Row('memory', '10000-partitions', ['mb', 'kb_each'], partitions, servers=BROKERS, fresh=True, rounds=1, goals=[
        Goal('under 4 kB each', lambda f: f['Dohle']['kb_each'], '<=', 4)])]
