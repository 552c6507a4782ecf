"""Produce: small, middle and large batches; without and with compression; acknowledged by the leader and
by all; into one, a hundred and a thousand partitions in turn."""
import load_run
from row import Goal, Row, ratio

TOPIC = 'bench'
SHAPES = {  # name: (records, bytes of each, in flight per connection)
    '1x100': (1, 100, 16),
    '100x100': (100, 100, 4),
    '1MB': (1000, 1000, 4),
}


def goals(shape, acks, codec):
    half_cpu = Goal('at most half of Kafka\'s CPU per request', ratio('cpu_us'), '<=', 0.5)
    if shape == '1x100':
        return [Goal('at least 4 x Kafka\'s rate', ratio('rate'), '>=', 4), half_cpu]
    if shape == '100x100':
        return [Goal('at least 2 x Kafka\'s rate', ratio('rate'), '>=', 2), half_cpu]

    def large_cpu(f):
        """By half of Kafka's CPU or 1.3 of the limit's where that needs over 0.4 of Kafka's."""
        kafka, limit = f['Kafka']['cpu_s_gb'], f['limit']['cpu_s_gb']
        allowed = 1.3 * limit if limit > 0.4 * kafka else 0.5 * kafka
        return f['Dohle']['cpu_s_gb'] / allowed

    return [Goal('at least Kafka\'s throughput', ratio('gb_s'), '>=', 1),
            Goal('CPU per GB by what is allowed: half of Kafka\'s, or 1.3 x the limit\'s where that is over 0.4 '
                 'of Kafka\'s', large_cpu, '<=', 1)]


def name_of(shape, codec, acks, partitions):
    return '%s-%s-acks=%s-%dp' % (shape, codec, 'all' if acks < 0 else acks, partitions)


def as_one(shape, codec, acks):
    """A thousand partitions against one."""
    key = 'cpu_s_gb' if shape == '1MB' else 'cpu_us'
    return Goal('CPU by that of one partition', lambda f, one: f['Dohle'][key] / one['Dohle'][key], '<=', 4 / 3,
                'produce/' + name_of(shape, codec, acks, 1))


def row(shape, codec, acks, partitions):
    records, record_bytes, in_flight = SHAPES[shape]
    figures = load_run.large if shape == '1MB' else load_run.small

    def before(server, bench):
        """Each partition has its files: what making them costs is not this row's."""
        server.create(TOPIC, partitions)
        bench.load('produce', server, topic=TOPIC, partitions=partitions, requests=partitions, warm=0, run=300)

    def run(server, bench):
        return figures(bench.load('produce', server, topic=TOPIC, partitions=partitions, acks=acks,
                                  codec=codec, records=records, record_bytes=record_bytes,
                                  in_flight=in_flight, bytes=bench.bytes_max))

    def after(server, bench):
        server.delete(TOPIC)

    columns = ['gb_s', 'cpu_s_gb'] if shape == '1MB' else ['rate', 'cpu_us']
    wanted = goals(shape, acks, codec) + [as_one(shape, codec, acks)] * (partitions == 1000)
    return Row('produce', name_of(shape, codec, acks, partitions), columns, run, before, after, wanted)


ROWS = [row(shape, codec, acks, partitions) for shape in SHAPES for codec in ('none', 'lz4')
        for acks in (1, -1) for partitions in (1, 100, 1000)]
