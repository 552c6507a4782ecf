#!/usr/bin/env python3
"""Three nodes under load and faults, and the checker over what they leave: called by run.sh, which knows where the
programs are. Ends with "N passed, N failed"; what a failed run left stays, and its path is told."""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import checker  # noqa: E402
import three  # noqa: E402
from three import Cluster, NotSettled  # noqa: E402
from faults import SETTLE_S, Faults  # noqa: E402
from node import DohleNode, KafkaNode  # noqa: E402
from workload import Workload  # noqa: E402

TOPIC, PARTITIONS = "records", 6
STOP_S = 60
RATE = 200  # records a second, of each producer
# Noticed in seconds, not in tens of seconds, so that minutes have many faults in them; small segments.
SETTINGS = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "replica.socket.timeout.ms": 5000,
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.min.isr": 2,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "log.segment.bytes": 1 << 20,
    "metadata.log.max.record.bytes.between.snapshots": 20000,
}


class Run:
    def __init__(self, args):
        self.args = args
        self.directory = args.directory
        self.begin = time.monotonic()
        self.passed = self.failed = 0
        self.log = open(os.path.join(self.directory, "events"), "w", encoding="utf-8")
        self.cluster = self.workload = self.faults = None
        self.high_watermark = 0

    def say(self, text):
        line = "%7.1f  %s" % (time.monotonic() - self.begin, text)
        print(line, flush=True)
        self.log.write(line + "\n")
        self.log.flush()

    def check(self, name, what):
        """One result; False when it is a bad one."""
        begin = time.monotonic()
        try:
            what()
        except (NotSettled, OSError, subprocess.SubprocessError, three.kafka.Closed, AssertionError) as e:
            self.failed += 1
            self.say("FAIL  %s: %s" % (name, e))
            return False
        self.passed += 1
        self.say("ok    %s (%.1f s)" % (name, time.monotonic() - begin))
        return True

    # ------------------------------------------------------------------ the parts

    def node(self, *words):
        if self.args.java:
            return KafkaNode(*words, self.args.java)
        return DohleNode(*words, self.args.dohle)

    def start(self):
        self.cluster = Cluster(os.path.join(self.directory, "nodes"), self.node, SETTINGS)
        self.cluster.start()

    def begin_load(self):
        self.cluster.create(TOPIC, PARTITIONS)
        self.cluster.settle(SETTLE_S)
        self.workload = Workload(os.path.join(self.directory, "clients"), self.cluster.brokers, TOPIC, self.args.programs, RATE)
        self.workload.started(120)

    def strike(self):
        end = time.monotonic() + self.args.minutes * 60
        self.faults = Faults(self.cluster, TOPIC, random.Random(self.args.seed), self.say, self.args.faults)
        while time.monotonic() < end:
            self.faults.strike()
            self.workload.check()

    def stop(self):
        self.high_watermark = self.cluster.quorum()[1]
        bad = self.cluster.stop(STOP_S)
        # Apache Kafka's last node waits for a controller that will not come.
        if bad and not self.args.java:
            raise NotSettled("nodes %s did not end well" % bad)

    def dump(self):
        nodes = list(self.cluster.nodes.values())
        running = [subprocess.Popen(self.args.dump + [n.data], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for n in nodes]
        said = [p.communicate()[0].decode(errors="replace") for p in running]
        for n, p, text in zip(nodes, running, said):
            if p.returncode != 0:
                raise NotSettled("node %d: %s" % (n.id, text[-2000:]))

    def judge(self):
        c = checker.Checker([n.data for n in self.cluster.nodes.values()], TOPIC, self.workload.unsure)
        c.check_logs(PARTITIONS)
        c.check_metadata(self.high_watermark)
        c.check_acknowledged([p.history for p in self.workload.producers])
        for group, members in self.workload.groups.items():
            c.check_consumed(group, [m.history for m in members])
        for text in c.faults:
            self.say("fault: " + text)
        self.say(", ".join("%d %s" % (n, what) for what, n in c.n.items()))
        if c.fault_n:
            raise NotSettled("%d faults" % c.fault_n)

    def all(self):
        """Each part needs the ones before."""
        return (
            self.check("start", self.start)
            and self.check("producers and groups begin", self.begin_load)
            and self.check("all is well again after each fault", self.strike)
            and self.check("all that was sent is acknowledged", self.workload.end_producers)
            and self.check("all is consumed and committed", lambda: self.workload.end_members(self.cluster))
            and self.check("at rest", lambda: self.cluster.settle(SETTLE_S))
            and self.check("stop", self.stop)
            and self.check("the checker finds nothing", self.judge)
            and (not self.args.dump or self.check("DumpLogSegments finds nothing", self.dump))
        )

    def close(self):
        if self.workload is not None:
            self.workload.kill()
        if self.cluster is not None:
            self.cluster.close()
        self.log.close()


def arguments():
    usage = "./dev compat cluster [quick] [--minutes M] [--seed N] [--faults KIND,...] [--kafka]"
    p = argparse.ArgumentParser(description=__doc__.split(":")[0], usage=usage)
    p.add_argument("--minutes", type=float, default=5)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    p.add_argument("--faults", type=lambda text: text.split(","), help="these kinds only: faults.py has them")
    p.add_argument("--dohle")
    p.add_argument("--directory")
    for words in ("--java", "--dump", "--programs"):  # JSON
        p.add_argument(words, type=json.loads)
    return p.parse_args()


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    run = Run(args)
    run.say("%s, seed %d, %g minutes" % ("Apache Kafka" if args.java else "Dohle", args.seed, args.minutes))
    good = False
    try:
        good = run.all()
        if run.faults is not None:
            run.say(", ".join("%s %d" % item for item in run.faults.counts.items() if item[1]))
    finally:
        run.close()
        if good:
            shutil.rmtree(args.directory)
        else:
            print("seed %d; histories, logs and files of the nodes: %s" % (args.seed, args.directory), flush=True)
    print("%d passed, %d failed" % (run.passed, run.failed))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
