"""Three nodes, replication factor 3, min.insync.replicas 2: what a write costs, how long there are no writes when a
node goes, how long until all is there again. Each round has a cluster of its own, from nothing."""
import signal
import time

import load_run
from probe import Probe
from row import Goal, Row, ratio
from servers.server import calls
from servers.three import three, until

BROKERS = ['Dohle', 'Kafka']
TOPIC = 'bench'
RATE = 1000  # produces a second, where latency is measured
CALM_S = 3  # of writes without trouble, after which it is over
WAIT_S = 120


def produce(figures, **options):
    def run(server, bench):
        with three(server, bench) as c:
            c.create(TOPIC)
            c.warm_up(bench, TOPIC)
            return figures(c.load(bench, TOPIC, bytes=bench.bytes_max, **options))
    return run


def latency(server, bench):
    with three(server, bench) as c:
        c.create(TOPIC)
        c.warm_up(bench, TOPIC)
        r = c.load(bench, TOPIC, rate=RATE, run=3 * bench.run_s)
        return {**load_run.latency(r), 'cpu_us': load_run.small(r)['cpu_us']}


def settled_mb(c):
    time.sleep(2)
    return c.memory_mb()


def memory(server, bench):
    with three(server, bench) as c:
        idle = settled_mb(c)
        c.create(TOPIC)
        for records, record_bytes, codec in ((1, 100, 'none'), (100, 100, 'lz4'), (1000, 1000, 'none')):
            c.load(bench, TOPIC, records=records, record_bytes=record_bytes, codec=codec, connections=16, in_flight=4,
                   bytes=bench.bytes_max)
        return {'idle_mb': idle, 'mb': settled_mb(c)}


# ---------------------------------------------------------------------- gaps

def kill_leader(c):
    c.leader(TOPIC).kill()


def kill_controller(c):
    c.controller().kill()


def pause_leader(c):
    """It stays so: it is ended with the others."""
    c.leader(TOPIC).pause()


def clean(c, node):
    node.terminate()
    if not node.wait_for_end(WAIT_S):
        raise AssertionError('node %d did not end well: %s' % (node.id, node.log_tail()))


def stop_leader(c):
    clean(c, c.leader(TOPIC))


def roll(c):
    for node in c.nodes.values():
        clean(c, node)
        node.start()
        c.settle()


def gap(blow, controller_leads=False):
    """The longest time between two answers from the blow on until all is calm. The controller leads the partition,
    or it does not."""
    def run(server, bench):
        with three(server, bench) as c:
            c.create(TOPIC)
            controller = c.controller().id
            others = [i for i in c.nodes if i != controller]
            replicas = [controller] + others if controller_leads else others + [controller]
            c.cluster.reassign({(TOPIC, 0): replicas})
            c.cluster.ask('ElectLeaders', 2, ElectionType=0, TimeoutMs=10000,
                          TopicPartitions=[{'Topic': TOPIC, 'Partitions': [0]}])
            until(lambda: c.leader(TOPIC).id == replicas[0], 'the leader does not move')
            c.settle()
            c.warm_up(bench, TOPIC)
            probe = Probe([n.port for n in c.nodes.values()], TOPIC)
            probe.start()
            try:
                until(lambda: len(probe.times) > 100, 'no writes')
                begin = time.monotonic()
                blow(c)
                until(lambda: probe.quiet_for() < 0.1, 'writes do not begin again', WAIT_S)
                calm(probe)
            finally:
                probe.end()
            return {'ms': probe.longest_gap_s(begin) * 1000}
    return run


def calm(probe):
    """Writes for a while without a gap that lasts."""
    end, since = time.monotonic() + WAIT_S, time.monotonic()
    while time.monotonic() - since < CALM_S:
        if probe.quiet_for() > 0.5:
            since = time.monotonic()
        if time.monotonic() > end:
            raise AssertionError('writes stop again and again')
        time.sleep(0.01)


# ---------------------------------------------------------------------- a replica from nothing

def emptied(server, bench):
    """From the start of a node whose disk is empty to its being in sync."""
    size = bench.bytes_max if bench.quick else 5e9
    with three(server, bench) as c:
        c.create(TOPIC)
        c.load(bench, TOPIC, records=1000, record_bytes=1000, in_flight=4, bytes=size, run=3600)
        leader = c.leader(TOPIC).id
        node = next(n for n in c.nodes.values() if n.id not in (leader, c.controller().id))
        node.kill()
        c.cluster.settle(WAIT_S, [i for i in c.nodes if i != node.id])
        node.empty()
        node.start()

        def in_sync():
            with c.cluster.connect(c.nodes[leader]) as connection:
                p = calls.metadata(connection, [TOPIC])['Topics'][0]['Partitions'][0]
            return node.id in p['IsrNodes']

        seconds = until(in_sync, 'it is not in sync', 1800, 0.02)
        return {'s': seconds, 'mb_s': size / 1e6 / seconds}


# ---------------------------------------------------------------------- many partitions

def served(c, topic, partitions, without=None):
    """Each partition has a leader that runs and answers for it."""
    node = next(n for n in c.nodes.values() if n.id != without)
    with c.cluster.connect(node, 60) as connection:
        found = calls.metadata(connection, [topic])['Topics'][0]
    led = {}
    for p in found['Partitions']:
        led.setdefault(p['LeaderId'], []).append(p['PartitionIndex'])
    if found['ErrorCode'] != 0 or sum(map(len, led.values())) != partitions or {-1, without} & set(led):
        return False
    for leader, indexes in led.items():
        with c.cluster.connect(c.nodes[leader], 60) as connection:
            answer = connection.ask('ListOffsets', 7, ReplicaId=-1, Topics=[{'Name': topic, 'Partitions': [
                {'PartitionIndex': i, 'Timestamp': calls.EARLIEST} for i in indexes]}])
        if any(p['ErrorCode'] != 0 for p in answer['Topics'][0]['Partitions']):
            return False
    return True


def many(topics):
    """Topics of a thousand partitions: created, idle, and one node killed."""
    def run(server, bench):
        each = 100 if bench.quick else 1000
        names = ['%s%d' % (TOPIC, i) for i in range(topics)]
        idle_s = 1 if bench.quick else 10
        with three(server, bench, heap_mb=1024) as c:
            begin = time.monotonic()
            for name in names:
                c.cluster.create(name, each)
            for name in names:
                until(lambda name=name: served(c, name, each), name + ' is not served')
            created = time.monotonic() - begin
            c.settle()
            before, at = c.cpu(), time.monotonic()
            time.sleep(idle_s)
            idle = (c.cpu() - before) / (time.monotonic() - at)
            gone = next(n for n in c.nodes.values() if n.id != c.controller().id)
            begin = time.monotonic()
            gone.process.send_signal(signal.SIGKILL)
            for name in names:
                until(lambda name=name: served(c, name, each, gone.id), name + ' is not served without a node')
            return {'create_s': created, 'failover_s': time.monotonic() - begin, 'idle_pct': 100 * idle}
    return run


def at_most(text, key, bound):
    return Goal(text, lambda f: f['Dohle'][key], '<=', bound)


def row(name, columns, run, goals=(), rounds=3):
    return Row('cluster', name, columns, run, servers=BROKERS, fresh=True, goals=goals, rounds=rounds)


ROWS = [
    row('produce-1x100', ['rate', 'cpu_us'], produce(load_run.small, records=1, record_bytes=100, in_flight=16),
        [Goal('at least Kafka\'s rate', ratio('rate'), '>=', 1), Goal('at most half of Kafka\'s CPU', ratio('cpu_us'), '<=', 0.5)]),
    row('produce-100x100', ['rate', 'cpu_us'], produce(load_run.small, records=100, record_bytes=100, in_flight=4),
        [Goal('at least Kafka\'s rate', ratio('rate'), '>=', 1), Goal('at most half of Kafka\'s CPU', ratio('cpu_us'), '<=', 0.5)]),
    row('produce-1MB', ['gb_s', 'cpu_s_gb'], produce(load_run.large, records=1000, record_bytes=1000, in_flight=4),
        [Goal('at least Kafka\'s throughput', ratio('gb_s'), '>=', 1),
         Goal('at most half of Kafka\'s CPU', ratio('cpu_s_gb'), '<=', 0.5)]),
    row('latency-1000-a-second', ['p50_us', 'p99_us', 'p999_us', 'cpu_us'], latency),
    row('memory', ['idle_mb', 'mb'], memory, [at_most('three nodes under 60 MB after load', 'mb', 60)]),
    row('gap-kill-leader', ['ms'], gap(kill_leader), [at_most('under 1 s', 'ms', 1000)]),
    row('gap-kill-controller', ['ms'], gap(kill_controller), [at_most('under 1 s', 'ms', 1000)]),
    row('gap-kill-both', ['ms'], gap(kill_leader, controller_leads=True), [at_most('under 1 s', 'ms', 1000)]),
    row('gap-stop-signal', ['ms'], gap(pause_leader)),
    row('gap-clean-shutdown', ['ms'], gap(stop_leader), [at_most('under 0.3 s', 'ms', 300)]),
    row('gap-rolling-restart', ['ms'], gap(roll), [at_most('under 0.3 s', 'ms', 300)]),
    row('emptied-5GB', ['s', 'mb_s'], emptied, rounds=1),
    row('1000-partitions', ['create_s', 'failover_s', 'idle_pct'], many(1), rounds=1),
    row('10000-partitions', ['create_s', 'failover_s', 'idle_pct'], many(10), rounds=1, goals=[
        at_most('created in 5 s', 'create_s', 5), at_most('failed over in 3 s', 'failover_s', 3)]),
]
