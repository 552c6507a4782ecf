#!/usr/bin/env python3
"""compat/served.py HOST:PORT API...: 0 when the broker advertises all of these APIs; 1, and those that
it does not on stdout, when not; 2 when it does not answer."""

import socket
import struct
import sys

KEYS = {
    "Produce": 0, "Fetch": 1, "ListOffsets": 2, "Metadata": 3, "OffsetCommit": 8, "OffsetFetch": 9,
    "FindCoordinator": 10, "JoinGroup": 11, "Heartbeat": 12, "LeaveGroup": 13, "SyncGroup": 14,
    "DescribeGroups": 15, "ListGroups": 16, "CreateTopics": 19, "DeleteTopics": 20, "DeleteRecords": 21,
    "InitProducerId": 22, "AddPartitionsToTxn": 24, "EndTxn": 26, "TxnOffsetCommit": 28,
    "DescribeAcls": 29, "DescribeConfigs": 32, "AlterConfigs": 33, "AlterReplicaLogDirs": 34,
    "DescribeLogDirs": 35, "CreatePartitions": 37, "DeleteGroups": 42, "ElectLeaders": 43,
    "IncrementalAlterConfigs": 44,
    "AlterPartitionReassignments": 45, "ListPartitionReassignments": 46, "OffsetDelete": 47,
    "DescribeCluster": 60, "DescribeProducers": 61, "DescribeTransactions": 65, "ListTransactions": 66,
    "ConsumerGroupHeartbeat": 68, "ConsumerGroupDescribe": 69, "DescribeTopicPartitions": 75,
    "ShareGroupHeartbeat": 76, "ShareFetch": 78,
}  # fmt: skip


def receive(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise OSError("closed")
        data += more
    return data


def advertised(broker):
    host, port = broker.rsplit(":", 1)
    request = struct.pack(">hhih", 18, 0, 1, -1)
    with socket.create_connection((host, int(port)), timeout=10) as s:
        s.sendall(struct.pack(">i", len(request)) + request)
        answer = receive(s, struct.unpack(">i", receive(s, 4))[0])
    _, error, n = struct.unpack_from(">ihi", answer)
    if error:
        raise OSError("error %d" % error)
    return {struct.unpack_from(">h", answer, 10 + 6 * i)[0] for i in range(n)}


def main():
    try:
        there = advertised(sys.argv[1])
    except OSError as e:
        print("%s: %s" % (sys.argv[1], e), file=sys.stderr)
        return 2
    missing = [name for name in sys.argv[2:] if KEYS[name] not in there]
    print(" ".join(missing))
    return 1 if missing else 0


sys.exit(main())
