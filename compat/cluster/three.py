"""Three nodes, the proxy between them, and what one asks them."""

import os
import sys
import time

from node import START_S, free_ports
from proxy import Proxy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "integration"))
import calls  # noqa: E402
import kafka  # noqa: E402

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
METADATA_TOPIC = "__cluster_metadata"
ASK_S = 5
POLL_S = 0.1


class NotSettled(Exception):
    pass


def state_of(partition):
    """What all nodes must tell alike of an entry of Metadata."""
    return partition["LeaderEpoch"], partition["ReplicaNodes"], set(partition["IsrNodes"])


class Cluster:
    """make: (node id, directory, cluster id) -> Node. proxied: the nodes reach each other through the proxy only."""

    def __init__(self, directory, make, settings, proxied=True):
        self.nodes = {i: make(i, directory, CLUSTER_ID) for i in (1, 2, 3)}
        self.proxy = None
        if proxied:
            self.proxy = Proxy(lambda: {n.pid: n.id for n in self.nodes.values() if n.runs()})
            for node in self.nodes.values():
                for listener in ("INTERNAL", "CONTROLLER"):
                    [node.advertised[listener]] = free_ports(1)
                    self.proxy.listen(node.advertised[listener], node.id, node.ports[listener])
        for node in self.nodes.values():
            # A node knows its own voter by where it listens; it never dials itself.
            voters = {n.id: n.advertised["CONTROLLER"] for n in self.nodes.values()}
            node.configure(voters, settings)

    @property
    def brokers(self):
        """For clients."""
        return ",".join("127.0.0.1:%d" % n.port for n in self.nodes.values())

    def start(self):
        for node in self.nodes.values():
            node.start()
        self.settle(START_S)

    def stop(self, timeout_s):
        """All at once: the last ones have no quorum. The ids of those that did not end well."""
        for node in self.nodes.values():
            node.terminate()
        end = time.monotonic() + timeout_s
        return [n.id for n in self.nodes.values() if not n.wait_for_end(max(0.1, end - time.monotonic()))]

    def close(self):
        for node in self.nodes.values():
            node.kill()
        if self.proxy is not None:
            self.proxy.close()

    # ------------------------------------------------------------------ questions

    def connect(self, node, timeout_s=ASK_S):
        return kafka.Connection(node.port, timeout_s)

    def first(self, name, ask):
        """ask(connection) of the first node that answers; name: of what is asked."""
        for node in self.nodes.values():
            if not node.answers():
                continue
            try:
                with self.connect(node) as c:
                    return ask(c)
            except (OSError, kafka.Closed, AssertionError):
                pass
        raise NotSettled("no node answers %s" % name)

    def ask(self, name, version, **fields):
        return self.first(name, lambda c: c.ask(name, version, **fields))

    def metadata(self):
        return self.first("Metadata", lambda c: calls.metadata(c, None))

    def quorum(self):
        """(leader, high watermark, {voter: end})"""
        answer = self.ask("DescribeQuorum", 1, Topics=[{"TopicName": METADATA_TOPIC, "Partitions": [{"PartitionIndex": 0}]}])
        if answer["ErrorCode"] != 0:
            raise NotSettled("DescribeQuorum: error %d" % answer["ErrorCode"])
        p = answer["Topics"][0]["Partitions"][0]
        if p["ErrorCode"] != 0:
            raise NotSettled("DescribeQuorum: error %d" % p["ErrorCode"])
        return p["LeaderId"], p["HighWatermark"], {v["ReplicaId"]: v["LogEndOffset"] for v in p["CurrentVoters"]}

    def partitions(self, node=None):
        """{(topic, partition): its entry of Metadata}, as NODE sees them, or any."""
        if node is None:
            answer = self.metadata()
        else:
            with self.connect(node) as c:
                answer = calls.metadata(c, None)
        if len(answer["Brokers"]) != len([n for n in self.nodes.values() if n.answers()]):
            raise NotSettled("the brokers are %s" % sorted(b["NodeId"] for b in answer["Brokers"]))
        return {(t["Name"], p["PartitionIndex"]): p for t in answer["Topics"] for p in t["Partitions"]}

    def leaders(self):
        """{(topic, partition): node id}; what has none, or may have, is left out."""
        answer = self.metadata()
        return {
            (t["Name"], p["PartitionIndex"]): p["LeaderId"]
            for t in answer["Topics"]
            for p in t["Partitions"]
            if p["ErrorCode"] == 0 and p["LeaderId"] >= 0
        }

    def end_offsets(self, topic):
        """{partition: high watermark}, by their leaders."""
        out = {}
        for (name, partition), leader in self.leaders().items():
            if name == topic:
                with self.connect(self.nodes[leader]) as c:
                    error, _, offset, _ = calls.offset_of(c, topic, partition, calls.LATEST)
                if error != 0:
                    raise NotSettled("ListOffsets of %s-%d: error %d" % (topic, partition, error))
                out[partition] = offset
        return out

    def committed(self, group, topic, partitions):
        """{partition: offset}"""
        answer = self.ask("FindCoordinator", 4, KeyType=0, CoordinatorKeys=[group])["Coordinators"][0]
        if answer["ErrorCode"] != 0:
            raise NotSettled("FindCoordinator: error %d" % answer["ErrorCode"])
        with self.connect(self.nodes[answer["NodeId"]]) as c:
            answer = c.ask("OffsetFetch", 7, GroupId=group, Topics=[{"Name": topic, "PartitionIndexes": list(partitions)}])
        if answer["ErrorCode"] != 0:
            raise NotSettled("OffsetFetch: error %d" % answer["ErrorCode"])
        return {p["PartitionIndex"]: p["CommittedOffset"] for p in answer["Topics"][0]["Partitions"]}

    # ------------------------------------------------------------------ orders

    def create(self, topic, partitions):
        answer = self.first("CreateTopics", lambda c: calls.create(c, topic, partitions, replication=len(self.nodes)))
        if answer["ErrorCode"] != 0:
            raise NotSettled("create %s: error %d %s" % (topic, answer["ErrorCode"], answer["ErrorMessage"]))

    def reassign(self, wanted):
        """wanted: {(topic, partition): replicas}."""
        topics = {}
        for (topic, partition), replicas in wanted.items():
            topics.setdefault(topic, []).append({"PartitionIndex": partition, "Replicas": replicas})
        answer = self.ask(
            "AlterPartitionReassignments", 0, TimeoutMs=30000, Topics=[{"Name": t, "Partitions": p} for t, p in topics.items()]
        )
        errors = [answer["ErrorCode"]] + [p["ErrorCode"] for t in answer["Responses"] for p in t["Partitions"]]
        if any(errors):
            raise NotSettled("reassignment: errors %s" % [e for e in errors if e != 0])

    def elect(self, keys):
        """The first replica of each (topic, partition), if it may lead now."""
        wanted = [{"Topic": topic, "Partitions": [partition]} for topic, partition in keys]
        self.ask("ElectLeaders", 2, ElectionType=0, TimeoutMs=5000, TopicPartitions=wanted)

    def reassigning(self):
        answer = self.ask("ListPartitionReassignments", 0, Topics=None)
        if answer["ErrorCode"] != 0:
            raise NotSettled("ListPartitionReassignments: error %d" % answer["ErrorCode"])
        return [(t["Name"], p["PartitionIndex"]) for t in answer["Topics"] for p in t["Partitions"]]

    # ------------------------------------------------------------------ at rest

    def look(self, members):
        """Raises NotSettled unless these nodes agree on everything and have everything."""
        leader, mark, ends = self.quorum()
        if leader not in members:
            raise NotSettled("the quorum has no leader")
        behind = [i for i in members if ends.get(i, -1) < mark]
        if behind:
            raise NotSettled("nodes %s lack metadata: %s of %d" % (behind, ends, mark))
        moving = self.reassigning()
        if moving and len(members) == len(self.nodes):
            raise NotSettled("%d partitions move: %s" % (len(moving), moving[:3]))
        views = [self.partitions(self.nodes[i]) for i in members]
        for key, p in views[0].items():
            if p["ErrorCode"] not in (0, 9) or p["LeaderId"] not in members:
                raise NotSettled("%s-%d has no leader: error %d" % (*key, p["ErrorCode"]))
            if set(p["IsrNodes"]) != set(p["ReplicaNodes"]) & set(members):
                raise NotSettled("%s-%d has the ISR %s of %s" % (*key, p["IsrNodes"], p["ReplicaNodes"]))
            if any(key not in v or state_of(v[key]) != state_of(p) for v in views):
                raise NotSettled("%s-%d is not the same on all nodes" % key)

    def settle(self, timeout_s, members=None):
        """Until all is well with these nodes, by default all. They must run."""
        members = members or list(self.nodes)
        end = time.monotonic() + timeout_s
        while True:
            for i in members:
                if not self.nodes[i].runs():
                    raise NotSettled("node %d ended with %s:\n%s" % (i, self.nodes[i].process.returncode, self.nodes[i].log_tail()))
            try:
                return self.look(members)
            except (NotSettled, OSError, kafka.Closed, AssertionError) as e:
                if time.monotonic() > end:
                    raise NotSettled("after %d s: %r" % (timeout_s, e)) from e
            time.sleep(POLL_S)
