"""A process that says to lead the metadata quorum and does not: it takes connections like a
controller's, and answers what the test wants."""
import socket
import struct
import threading
import uuid

import kafka
import messages

METADATA = uuid.UUID(int=1)
API_VERSIONS, FETCH = 18, 1
SERVED = [{'ApiKey': key, 'MinVersion': low, 'MaxVersion': high} for key, low, high in (
    (1, 13, 17), (18, 0, 4), (52, 0, 2), (53, 0, 1), (54, 0, 1), (58, 0, 0), (59, 0, 1),
    (62, 0, 4), (63, 0, 1), (82, 0, 0))]


class FalseLeader:
    """fetch(leader, correlation id): the frame that answers a Fetch, without its length."""

    def __init__(self, node_id, epoch, fetch):
        self.id, self.epoch, self.fetch = node_id, epoch, fetch
        self.fetches = self.connections = 0
        self.listener = socket.socket()
        self.listener.bind(('127.0.0.1', 0))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)

    def accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        with s:
            try:
                while True:
                    frame = self.receive(s, struct.unpack('>i', self.receive(s, 4))[0])
                    key, version, correlation_id = struct.unpack_from('>hhi', frame)
                    data = self.answer(key, version, correlation_id)
                    s.sendall(struct.pack('>i', len(data)) + data)
            except (OSError, EOFError):
                pass

    def receive(self, s, n):
        parts = b''
        while len(parts) < n:
            part = s.recv(n - len(parts))
            if not part:
                raise EOFError
            parts += part
        return parts

    def answer(self, key, version, correlation_id):
        if key == API_VERSIONS:
            return messages.answer('ApiVersions', min(version, 4), {'ApiKeys': SERVED},
                                   correlation_id)
        if key == FETCH:
            self.fetches += 1
            return self.fetch(self, version, correlation_id)
        return struct.pack('>i', correlation_id) + b'\xff' * 40

    def fetch_answer(self, version, correlation_id, **part):
        return messages.answer('Fetch', version, {'Responses': [{
            'TopicId': METADATA, 'Partitions': [{
                'PartitionIndex': 0, 'HighWatermark': -1,
                'CurrentLeader': {'LeaderId': self.id, 'LeaderEpoch': self.epoch}, **part}]}]},
            correlation_id)

    def announce(self, port, cluster_id=None):
        """BeginQuorumEpoch to the controller that listens there; its answer."""
        with kafka.Connection(port) as c:
            return c.ask('BeginQuorumEpoch', 1, ClusterId=cluster_id, VoterId=-1, Topics=[{
                'TopicName': '__cluster_metadata', 'Partitions': [{
                    'PartitionIndex': 0, 'LeaderId': self.id, 'LeaderEpoch': self.epoch}]}],
                LeaderEndpoints=[{'Name': 'CONTROLLER', 'Host': '127.0.0.1', 'Port': self.port}])
