"""One record after the other with acks=all to one partition, wherever its leader is: when each was acknowledged.
What does not answer in time is left, and the other nodes are asked who leads; so what is seen are the cluster's
own gaps, not a client's patience."""
import threading
import time

from servers.server import calls, kafka

ANSWER_S = 0.1
PAUSE_S = 0.002
VALUE = kafka.batch([b'x' * 100])


class Probe(threading.Thread):
    def __init__(self, ports, topic):
        """ports: of all nodes, for clients."""
        super().__init__(daemon=True)
        self.ports, self.topic = ports, topic
        self.times = []  # of the answers, monotonic
        self.ended = False

    def leader(self):
        """The port of the leader as the first node says that answers; None: nobody knows."""
        for port in self.ports:
            try:
                with kafka.Connection(port, ANSWER_S) as c:
                    answer = calls.metadata(c, [self.topic])
            except (OSError, kafka.Closed):
                continue
            finally:
                self.ports = self.ports[1:] + self.ports[:1]
            p = answer['Topics'][0]['Partitions']
            at = {b['NodeId']: b['Port'] for b in answer['Brokers']}
            if p and p[0]['ErrorCode'] == 0 and p[0]['LeaderId'] in at:
                return at[p[0]['LeaderId']]
        return None

    def produce(self, port):
        """Until something is wrong."""
        with kafka.Connection(port, ANSWER_S) as c:
            while not self.ended:
                error, _ = kafka.produce_answer(c.call(kafka.PRODUCE, kafka.produce_body(self.topic, 0, VALUE)))
                if error != 0:
                    return
                self.times.append(time.monotonic())
                time.sleep(PAUSE_S)

    def run(self):
        while not self.ended:
            try:
                port = self.leader()
                if port is not None:
                    self.produce(port)
            except (OSError, kafka.Closed):
                pass
            time.sleep(PAUSE_S)

    def end(self):
        self.ended = True
        self.join()

    def quiet_for(self):
        return time.monotonic() - self.times[-1] if self.times else float('inf')

    def longest_gap_s(self, since):
        times = [t for t in self.times if t >= since]
        return max(b - a for a, b in zip([since] + times, times))
