"""The clients that run meanwhile: producers and members of groups, each a process whose RECORDs (compat/README.md)
are its history."""

import os
import subprocess
import time

import kafka
from three import NotSettled

KEYS = 20
END_S = 300
UNSURE = ("java",)  # whose first producer has five requests in flight: unsure.py


class Client:
    """One process. Files: NAME.tsv its history, NAME.out, NAME.err; NAME.stop ends it."""

    def __init__(self, directory, name, command):
        self.name = name
        self.path = lambda suffix: os.path.join(directory, name + suffix)
        self.history = self.path(".tsv")
        with open(self.path(".out"), "wb") as out, open(self.path(".err"), "wb") as err:
            self.process = subprocess.Popen(command(self.history, self.path(".stop")), stdout=out, stderr=err, stdin=subprocess.DEVNULL)

    def stop(self):
        with open(self.path(".stop"), "wb"):
            pass

    def wait(self, timeout_s):
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NotSettled("%s does not end:\n%s" % (self.name, self.error())) from None
        if code != 0:
            raise NotSettled("%s ended with %d: %s" % (self.name, code, self.error()))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def runs(self):
        return self.process.poll() is None

    def error(self):
        with open(self.path(".err"), "rb") as f:
            return f.read()[-1000:].decode(errors="replace").strip()

    def size(self):
        return os.path.getsize(self.history) if os.path.exists(self.history) else 0


class Workload:
    """programs: {kind: (words before the producer's arguments, words before a member's)}."""

    def __init__(self, directory, brokers, topic, programs, rate):
        os.makedirs(directory)
        self.topic = topic
        self.producers, self.groups, self.unsure = [], {}, {}
        for kind, (producer, member) in programs.items():
            for n, codec in enumerate(("none", "gzip")):
                name = "%s-%d" % (kind, n)
                given_up = []
                if kind in UNSURE and n == 0:
                    given_up = [os.path.join(directory, name + ".given-up")]
                    self.unsure[name.encode() + b"-"] = given_up[0]
                self.producers.append(
                    Client(
                        directory,
                        "producer-" + name,
                        lambda out, stop, name=name, codec=codec, given_up=given_up: producer
                        + [brokers, topic, name, str(KEYS), str(rate), codec, out, stop]
                        + given_up,
                    )
                )
            group = "group-" + kind
            self.groups[group] = [
                Client(
                    directory,
                    "%s-%d" % (group, n),
                    lambda out, stop, group=group: member + ["member", brokers, topic, group, out, stop, "classic"],
                )
                for n in range(2)
            ]

    def members(self):
        return [m for group in self.groups.values() for m in group]

    def started(self, timeout_s):
        """Each producer and each group has something."""
        end = time.monotonic() + timeout_s
        while not (all(p.size() for p in self.producers) and all(any(m.size() for m in g) for g in self.groups.values())):
            self.check()
            if time.monotonic() > end:
                silent = [c.name for c in self.producers + self.members() if not c.size()]
                raise NotSettled("nothing comes of %s" % silent)
            time.sleep(0.1)

    def check(self):
        for c in self.producers + self.members():
            if not c.runs():
                raise NotSettled("%s ended: %s" % (c.name, c.error()))

    def end_producers(self):
        for p in self.producers:
            p.stop()
        for p in self.producers:
            p.wait(END_S)

    def end_members(self, cluster):
        """When they have committed all there is."""
        ends = cluster.end_offsets(self.topic)
        for group in self.groups:
            self.caught_up(cluster, group, ends)
        for m in self.members():
            m.stop()
        for m in self.members():
            m.wait(END_S)

    def caught_up(self, cluster, group, ends):
        limit = time.monotonic() + END_S
        has = None
        while has != ends:
            try:
                has = cluster.committed(group, self.topic, ends)
            except (NotSettled, OSError, kafka.Closed):
                pass
            if time.monotonic() > limit:
                raise NotSettled("%s has committed %s of %s" % (group, has, ends))
            time.sleep(0.2)

    def kill(self):
        for c in self.producers + self.members():
            if c.runs():
                c.kill()
