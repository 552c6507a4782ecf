"""Fetch of one batch per request, from a topic whose batches are of that size: from the page cache, and
from the disk."""
import glob
import os

import load_run
from row import Goal, Row, ratio

TOPIC = 'bench'
SHAPES = {'64kB': (64, 1000), '1MB': (1000, 1000)}  # name: (records, bytes of each)


def fill(server, bench, shape):
    """A topic of bench.fetch_bytes in equal batches; its number of batches and their size."""
    records, record_bytes = SHAPES[shape]
    server.create(TOPIC)
    batches = max(bench.fetch_bytes // (records * record_bytes), 16)
    r = bench.load('produce', server, topic=TOPIC, records=records, record_bytes=record_bytes, warm=0, run=120,
                   connections=1, in_flight=1, requests=batches, acks=-1)
    return r['requests'], r['bytes'] // r['requests']


def files(server):
    found = glob.glob(os.path.join(server.data(), TOPIC + '-0' if server.has_topics else '', '*.log'))
    assert found, 'no files of %s' % server.name
    return found


def drop_from_cache(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def row(shape, cold):
    filled = {}

    def before(server, bench):
        filled[server.name] = fill(server, bench, shape)

    def run(server, bench):
        batches, batch_bytes = filled[server.name]
        how = {}
        if cold:
            for path in files(server):
                drop_from_cache(path)
            how = {'warm': 0, 'run': 120, 'requests': batches - 8}
        return load_run.large(bench.load('fetch', server, topic=TOPIC, records=SHAPES[shape][0],
                                         batches=batches, batch_bytes=batch_bytes, in_flight=2, **how))

    def after(server, bench):
        server.delete(TOPIC)

    return Row('fetch', '%s-%s' % (shape, 'cold' if cold else 'warm'), ['gb_s', 'cpu_s_gb'], run, before,
               after, [Goal('at least 0.9 of Kafka\'s throughput', ratio('gb_s'), '>=', 0.9),
                       Goal('no more CPU per GB than Kafka', ratio('cpu_s_gb'), '<=', 1)])


ROWS = [row(shape, cold) for cold in (False, True) for shape in SHAPES]
