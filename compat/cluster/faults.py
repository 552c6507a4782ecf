"""What is done to a cluster: each fault lasts a while, is undone, and everything must be well again in time."""

import time

from three import POLL_S, NotSettled

SETTLE_S = 180
WITHOUT_S = 60  # until two nodes have noticed that they are without the third


class Faults:
    """say: where it is told what is done. rng decides what and for how long."""

    # name -> how often, relative to the others
    KINDS = {
        "kill_leader": 3,
        "kill_controller": 3,
        "kill_both": 2,
        "kill_all": 1,
        "pause_leader": 3,
        "pause_controller": 2,
        "pause_both": 1,
        "empty": 2,
        "roll": 1,
        "cut_off": 3,
        "cut_off_one_way": 3,
        "cut_pair": 2,
        "slow": 1,
        "break_connections": 2,
    }

    def __init__(self, cluster, topic, rng, say, kinds=None):
        self.cluster, self.topic, self.rng, self.say = cluster, topic, rng, say
        self.kinds = kinds or list(self.KINDS)
        self.counts = dict.fromkeys(list(self.KINDS) + ["reassign"], 0)
        self.first = list(self.kinds)  # every kind comes once before chance decides
        rng.shuffle(self.first)

    def next(self):
        if self.first:
            return self.first.pop()
        return self.rng.choices(self.kinds, [self.KINDS[k] for k in self.kinds])[0]

    def strike(self):
        """One fault from the first blow until all is well again."""
        kind = self.next()
        if kind not in ("empty", "kill_all") and self.rng.random() < 0.5:
            self.reassign()
        begin = time.monotonic()
        getattr(self, kind)()
        self.counts[kind] += 1
        self.cluster.settle(SETTLE_S)
        self.say("all is well after %.1f s" % (time.monotonic() - begin))
        self.restore()

    # ------------------------------------------------------------------ who

    def leader(self):
        leaders = self.cluster.leaders()
        mine = sorted(key for key in leaders if key[0] == self.topic)
        if not mine:
            raise NotSettled("nobody leads " + self.topic)
        return self.cluster.nodes[leaders[self.rng.choice(mine)]]

    def controller(self):
        return self.cluster.nodes[self.cluster.quorum()[0]]

    def both(self):
        """A leader and the controller, or, where they are one, the one of them."""
        return list({self.leader(), self.controller()})

    def anyone(self):
        return self.rng.choice(list(self.cluster.nodes.values()))

    def others(self, node):
        return [i for i in self.cluster.nodes if i != node.id]

    def wait(self, low, high):
        seconds = self.rng.uniform(low, high)
        time.sleep(seconds)
        return seconds

    # ------------------------------------------------------------------ processes

    def kill(self, nodes, low=0, high=8):
        self.say("kill -9 %s" % sorted(n.id for n in nodes))
        for n in nodes:
            n.kill()
        seconds = self.wait(low, high)
        self.say("start %s after %.1f s" % (sorted(n.id for n in nodes), seconds))
        for n in nodes:
            n.start()

    def kill_leader(self):
        self.kill([self.leader()])

    def kill_controller(self):
        self.kill([self.controller()])

    def kill_both(self):
        self.kill(self.both())

    def kill_all(self):
        self.kill(list(self.cluster.nodes.values()), 0, 1)

    def pause(self, nodes):
        for n in nodes:
            n.pause()
        try:
            seconds = self.wait(1, 12)
        finally:
            for n in nodes:
                n.resume()
        self.say("SIGSTOP %s for %.1f s" % (sorted(n.id for n in nodes), seconds))

    def pause_leader(self):
        self.pause([self.leader()])

    def pause_controller(self):
        self.pause([self.controller()])

    def pause_both(self):
        self.pause(self.both())

    def empty(self):
        """All that was acknowledged, metadata too, is on the two others before its disk goes, and again on three
        before anything else is done: never a majority at once."""
        node = self.anyone()
        self.cluster.settle(SETTLE_S)
        self.say("kill -9 [%d]" % node.id)
        node.kill()
        self.cluster.settle(WITHOUT_S, self.others(node))
        self.say("empty [%d] and start it" % node.id)
        node.empty()
        node.start()
        self.cluster.settle(SETTLE_S)
        self.lead(node)

    def lead(self, node):
        """It leads everything, which the controller allows only on the disk that it knows of."""
        keys = self.topic_partitions()
        self.cluster.reassign({key: [node.id] + self.others(node) for key in keys})
        end = time.monotonic() + WITHOUT_S
        while not self.leads(node, keys):
            if time.monotonic() > end:
                raise NotSettled("[%d], emptied and in sync, does not become leader" % node.id)
            self.cluster.elect(keys)
            time.sleep(POLL_S)
        self.say("[%d] leads" % node.id)

    def leads(self, node, keys):
        leaders = self.cluster.leaders()
        return all(leaders.get(key) == node.id for key in keys)

    def roll(self):
        """Each in its turn, cleanly, when the one before is well again."""
        for node in self.cluster.nodes.values():
            self.say("TERM [%d]" % node.id)
            node.terminate()
            if not node.wait_for_end(SETTLE_S):
                raise NotSettled("node %d did not end well: %s" % (node.id, node.log_tail()))
            node.start()
            self.cluster.settle(SETTLE_S)

    # ------------------------------------------------------------------ the network

    def held(self, what, ways):
        self.cluster.proxy.hold(*ways)
        try:
            seconds = self.wait(1, 15)
        finally:
            self.cluster.proxy.heal()
        self.say("%s for %.1f s" % (what, seconds))

    def chosen(self):
        return self.rng.choice([self.leader, self.controller, self.anyone])()

    def cut_off(self):
        node = self.chosen()
        ways = [way for i in self.others(node) for way in ((node.id, i), (i, node.id))]
        self.held("[%d] is cut off" % node.id, ways)

    def cut_off_one_way(self):
        node = self.chosen()
        if self.rng.random() < 0.5:
            self.held("nothing from [%d] arrives" % node.id, [(node.id, i) for i in self.others(node)])
        else:
            self.held("nothing arrives at [%d]" % node.id, [(i, node.id) for i in self.others(node)])

    def cut_pair(self):
        node = self.chosen()
        other = self.rng.choice(self.others(node))
        ways = [(node.id, other), (other, node.id)][: self.rng.randint(1, 2)]
        self.held("nothing passes %s" % " or ".join("%d -> %d" % way for way in ways), ways)

    def slow(self):
        node = self.anyone()
        delay_s = self.rng.uniform(0.01, 0.3)
        self.cluster.proxy.slow(delay_s, *[way for i in self.others(node) for way in ((node.id, i), (i, node.id))])
        try:
            seconds = self.wait(3, 10)
        finally:
            self.cluster.proxy.heal()
        self.say("[%d] is %.0f ms away for %.1f s" % (node.id, delay_s * 1000, seconds))

    def break_connections(self):
        n = self.rng.randint(3, 20)
        self.say("break connections %d times" % n)
        for _ in range(n):
            node = self.anyone()
            self.cluster.proxy.cut(node.id, self.rng.choice(self.others(node)))
            self.wait(0, 0.5)

    # ------------------------------------------------------------------ reassignments

    def topic_partitions(self):
        return sorted(key for key in self.cluster.partitions() if key[0] == self.topic)

    def reassign(self):
        """All partitions: each loses one of its three replicas, or gets another first one."""
        wanted = {}
        for key in self.topic_partitions():
            replicas = list(self.cluster.nodes)
            self.rng.shuffle(replicas)
            wanted[key] = replicas[: self.rng.randint(2, 3)]
        self.cluster.reassign(wanted)
        self.counts["reassign"] += 1
        self.say("reassign %d partitions" % len(wanted))

    def restore(self):
        """Three replicas of each again."""
        wanted = {}
        for key, p in self.cluster.partitions().items():
            if key[0] == self.topic and len(p["ReplicaNodes"]) < len(self.cluster.nodes):
                wanted[key] = p["ReplicaNodes"] + [i for i in self.cluster.nodes if i not in p["ReplicaNodes"]]
        if wanted:
            self.cluster.reassign(wanted)
            self.cluster.settle(SETTLE_S)
