"""One client and its connection: requests of messages.py, whose answers may wait.

    with Client(port) as c:
        c.call('Heartbeat', 4, GroupId='g', GenerationId=1, MemberId='m')     # the answer, a dict
        c.send('JoinGroup', 9, ...)
        c.waits()                                                             # nothing came so far
        c.receive()
"""
import select
import struct

import kafka
import messages

Closed = kafka.Closed


class Client:
    def __init__(self, port, client_id='test'):
        self.connection = kafka.Connection(port)
        self.client_id = client_id
        self.sent, self.correlation_id = [], 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.connection.close()

    def send(self, name, version, **fields):
        self.correlation_id += 1
        data = messages.request(name, version, fields, self.correlation_id, self.client_id)
        self.sent.append((self.correlation_id, name, version))
        self.connection.send(struct.pack('>i', len(data)) + data)
        return self

    def receive(self):
        """The answer to the oldest request that has none yet."""
        expected, name, version = self.sent.pop(0)
        correlation_id, data = self.connection.answer()
        assert correlation_id == expected
        return messages.response(name, version, data)

    def waits(self, for_s=0):
        return not select.select([self.connection.socket], [], [], for_s)[0]

    def call(self, name, version, **fields):
        return self.send(name, version, **fields).receive()
