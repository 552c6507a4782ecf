"""From exec to answers: the first start, formatting included, and the one after kill -9."""
import os
import shutil
import signal
import time

from row import Goal, Row
from servers.server import answers, led

TOPIC, PARTITIONS = 'bench', 100


def fresh(server, bench):
    """One of the same kind in an empty directory; server only tells which."""
    other = type(server)(os.path.join(bench.directory, 'fresh'))
    other.remove()
    os.makedirs(other.directory)
    if hasattr(other, 'prepared'):
        other.prepared()
    return other


def timed(start, check, server):
    begin = time.monotonic()
    start()
    server.wait(check)
    return (time.monotonic() - begin) * 1000


def first_start(server, bench):
    other = fresh(server, bench)

    def start():
        other.format()
        other.spawn()

    try:
        return {'ms': timed(start, answers, other)}
    finally:
        other.remove()


def again(server, bench):
    """bench.recover_bytes in a hundred partitions, killed, until all of them are led and answer."""
    other = fresh(server, bench).start()
    try:
        other.create(TOPIC, PARTITIONS)
        bench.load('produce', other, topic=TOPIC, partitions=PARTITIONS, acks=-1, records=100, record_bytes=1000,
                   in_flight=4, warm=0, run=300, bytes=bench.recover_bytes)
        other.stop(signal.SIGKILL)
        return {'ms': timed(other.spawn, lambda c: led(c, TOPIC, PARTITIONS), other)}
    finally:
        other.remove()
        shutil.rmtree(os.path.join(bench.directory, 'fresh'), ignore_errors=True)


BROKERS = ['Dohle', 'Kafka']
ROWS = [Row('ready', 'first-start', ['ms'], first_start, servers=BROKERS, fresh=True, goals=[
            Goal('under 15 ms', lambda f: f['Dohle']['ms'], '<=', 15)]),
        Row('ready', 'after-kill-1GB-100p', ['ms'], again, servers=BROKERS, fresh=True)]
