"""producer.py BROKERS TOPIC NAME KEYS RATE CODEC OUT STOP: librdkafka, idempotent, acks=all. Until STOP is there, RATE
records a second; the value of the nth record of a key begins with n and a colon, from 0. Each RECORD of
compat/README.md that is acknowledged goes to OUT. Fails when one is not, however long that takes."""

import os
import sys
import time

from confluent_kafka import Producer

TICK_S = 0.02
END_S = 240


def value_of(n):
    return b"%d:%s" % (n, b"x" * (n * 31 % 150))


def settings(brokers, codec):
    return {
        "bootstrap.servers": brokers,
        "acks": "all",
        "enable.idempotence": True,
        "compression.type": codec,
        "linger.ms": 5,
        "message.timeout.ms": 0,  # never given up
        # With more, librdkafka takes the answer to a request whose predecessor failed for a loss, and begins anew:
        # records may come twice, or never (its issue 4953). The Java client has its five.
        "max.in.flight.requests.per.connection": 1,
        "socket.timeout.ms": 10000,
        "topic.metadata.refresh.interval.ms": 5000,
        "reconnect.backoff.max.ms": 500,
        "retry.backoff.max.ms": 500,
        "log_level": 3,
    }


class Sender:
    def __init__(self, brokers, topic, name, keys, codec, out):
        self.topic, self.out, self.fault = topic, out, None
        self.keys = [b"%s-%d" % (name.encode(), k) for k in range(keys)]
        self.next = [0] * keys
        self.at = self.sent = self.acknowledged = 0
        self.producer = Producer({**settings(brokers, codec), "error_cb": self.error})

    def error(self, e):
        if e.fatal():
            self.fault = self.fault or str(e)

    def delivered(self, error, m):
        if error is not None:
            self.fault = self.fault or "%s %s: %s" % (m.key(), m.value()[:20], error)
            return
        self.acknowledged += 1
        self.out.write(b"%d\t%d\t%s\t%s\n" % (m.partition(), m.offset(), m.key(), m.value()))

    def send(self, n):
        """Up to n; fewer when the client's queue is full."""
        for _ in range(n):
            k = self.at
            try:
                self.producer.produce(self.topic, key=self.keys[k], value=value_of(self.next[k]), on_delivery=self.delivered)
            except BufferError:
                return
            self.next[k] += 1
            self.at = (k + 1) % len(self.keys)
            self.sent += 1


def main(brokers, topic, name, keys, rate, codec, path, stop):
    with open(path, "wb", 1 << 16) as out:
        sender = Sender(brokers, topic, name, int(keys), codec, out)
        begin = time.monotonic()
        due = 0
        while not os.path.exists(stop) and not sender.fault:
            now_due = int((time.monotonic() - begin) * int(rate))
            sender.send(min(now_due - due, 1000))
            due = now_due
            sender.producer.poll(TICK_S)
            out.flush()
        if not sender.fault:
            sender.producer.flush(END_S)
    if sender.fault or sender.acknowledged != sender.sent:
        sys.exit("%d of %d were acknowledged: %s" % (sender.acknowledged, sender.sent, sender.fault))
    print("produced", sender.sent)


main(*sys.argv[1:])
