#!/usr/bin/env python3
"""./dev bench: Dohle, Apache Kafka and the do-nothing server under the same loads. README.md tells how to
read it; rows/ has what is measured.

usage: bench.py [--quick] [--rounds N] [--dir DIR] [--list] [--report] [ROW...]
ROW is a group, a row, or a pattern of those ('produce/1x100*'); without any, all.
"""
import argparse
import fnmatch
import importlib
import os
import pkgutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import disk  # pylint: disable=wrong-import-position
import load_run  # pylint: disable=wrong-import-position
import network  # pylint: disable=wrong-import-position
import report  # pylint: disable=wrong-import-position
import row as rows_of  # pylint: disable=wrong-import-position
import rows  # pylint: disable=wrong-import-position
import servers  # pylint: disable=wrong-import-position
from servers.process import raise_fd_limit  # pylint: disable=wrong-import-position
from servers.server import ROOT, Closed, ServerFailed  # pylint: disable=wrong-import-position

GROUPS = ('ready', 'requests', 'produce', 'fetch', 'sync', 'latency', 'commits', 'memory', 'clients', 'cluster')


class Bench:
    """What the rows use: how long and how much, and the servers that run."""
    program = os.path.join(ROOT, 'build', 'release', 'bench', 'bench-load')

    def __init__(self, args):
        self.quick = args.quick
        self.rounds = args.rounds or (1 if args.quick else 5)
        self.warm_s, self.run_s = (0.1, 0.3) if args.quick else (0.3, 1.5)
        self.bytes_max = 50e6 if args.quick else 300e6  # of one run: what the page cache takes
        self.recover_bytes = 50e6 if args.quick else 1e9
        self.fetch_bytes = 64000000 if args.quick else 512000000
        self.directory = os.path.abspath(args.dir)
        self.running = {}

    def load(self, kind, server, **options):
        options.setdefault('warm', self.warm_s)
        options.setdefault('run', self.run_s)
        return load_run.run(self.program, kind, server, **options)

    def unstarted(self, name):
        return next(c for c in servers.ALL if c.name == name)(self.directory)

    def server(self, name):
        """The long-running one of this name; Kafka's compiler gets its time."""
        if name not in self.running:
            self.running[name] = self.unstarted(name)
            self.running[name].remove()
            self.running[name].start()
            if name == 'Kafka':
                self.warm_up(self.running[name])
        return self.running[name]

    def warm_up(self, server):
        """Small produces until a request costs no less than before, and at least 20 s; then some of the others."""
        print('warming %s' % server.name, flush=True)
        seconds, least_n, most_n = (2, 1, 1) if self.quick else (4, 5, 20)
        server.create('warm', 10)
        costs = []
        while len(costs) < least_n or (len(costs) < most_n and min(costs[-2:]) < 0.95 * min(costs[:-2])):
            costs.append(load_run.small(self.load('produce', server, topic='warm', partitions=10, run=seconds,
                                                  acks=1))['cpu_us'])
        self.load('api-versions', server, run=seconds)
        self.load('produce', server, topic='warm', partitions=10, run=seconds, records=100, in_flight=4,
                  codec='lz4', bytes=self.bytes_max)
        server.delete('warm')

    def close(self):
        for server in self.running.values():
            server.remove()
        self.running = {}


def all_rows():
    found = {}
    for module in pkgutil.iter_modules(rows.__path__):
        for row in importlib.import_module('rows.' + module.name).ROWS:
            found.setdefault(row.group, []).append(row)
    return [row for group in GROUPS for row in found.get(group, [])]


def chosen_rows(patterns):
    known, chosen = all_rows(), []
    for pattern in patterns or ['*']:
        hits = [r for r in known if r.group == pattern or r.name == pattern or
                fnmatch.fnmatch(r.full_name, pattern)]
        if not hits:
            raise SystemExit('no row %s; --list has them' % pattern)
        chosen += [r for r in hits if r not in chosen]
    return chosen


def measure(bench, row):
    """{server: [figures of each round]}: round by round, each server in its turn."""
    names = row.servers or [s.name for s in servers.ALL]
    taken = {name: [] for name in names}
    running = [bench.unstarted(name) if row.fresh else bench.server(name) for name in names]
    for server in running:
        if row.before:
            row.before(server, bench)
    for _ in range(min(row.rounds or bench.rounds, bench.rounds)):
        for server in running:
            taken[server.name].append(row.run(server, bench))
    for server in running:
        if row.after:
            row.after(server, bench)
    return taken


def tell(row, figures):
    words = []
    for server, f in figures.items():
        words.append(server + ' ' + ', '.join('%.*f %s' % (rows_of.COLUMNS[c][1], f[c], rows_of.COLUMNS[c][0])
                                              for c in row.columns if c in f))
    print('%-36s %s' % (row.full_name, ' | '.join(words)), flush=True)


def run(bench, chosen, store):
    """How many rows failed. After a failure the others get servers that know nothing of it."""
    failed = 0
    for row in chosen:
        try:
            taken = measure(bench, row)
        except (load_run.LoadFailed, ServerFailed, Closed, OSError, AssertionError,
                subprocess.SubprocessError) as e:
            print('%-36s FAILED\n%r' % (row.full_name, e), flush=True)
            failed += 1
            bench.close()
            continue
        tell(row, {name: rows_of.medians(rounds) for name, rounds in taken.items()})
        store.put(row, taken)
        store.save()
    return failed


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--quick', action='store_true', help='seconds instead of an hour; writes to build/bench only')
    p.add_argument('--rounds', type=int)
    p.add_argument('--dir', default=os.path.join(ROOT, 'build', 'bench', 'work'))
    p.add_argument('--list', action='store_true')
    p.add_argument('--report', action='store_true', help='measures nothing; tables and plots from results.json')
    p.add_argument('rows', nargs='*')
    args = p.parse_args()
    chosen = chosen_rows(args.rows)
    if args.list:
        print('\n'.join(r.full_name for r in chosen))
        return 0
    if not network.enter():
        print("measuring with the machine's own network: no namespace allowed")
    raise_fd_limit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    out = os.path.join(ROOT, 'build', 'bench') if args.quick else HERE
    command = './dev bench ' + ' '.join(sys.argv[1:])
    begin = time.monotonic()
    with disk.default_read_ahead(args.dir) as default:
        if not default:
            print("measuring with the machine's own read-ahead: not allowed to change it")
        store = report.Store(out, command, all_rows(), args.dir)
        if args.report:
            store.write()
            return 0
        bench = Bench(args)
        try:
            failed = run(bench, chosen, store)
        finally:
            bench.close()
    store.write()
    print('%d rows in %d s, %d failed; %s' % (len(chosen), time.monotonic() - begin, failed,
                                              os.path.join(out, 'RESULTS.md')))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
