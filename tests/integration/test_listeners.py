"""Listeners of clients and of controllers: what is asked on each."""
import struct

import broker
import kafka
import protocol

PRODUCE, BROKER_HEARTBEAT, API_VERSIONS = 0, 63, 18


class Listeners(broker.BrokerTest):
    settings = {'listeners': 'PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0',
                'controller.listener.names': 'CONTROLLER'}

    def controller(self):
        return protocol.Client(self.broker.ports['CONTROLLER'])

    def client(self):
        return protocol.Client(self.broker.ports['PLAINTEXT'])

    def keys(self, c):
        answer = c.call('ApiVersions', 3, ClientSoftwareName='t', ClientSoftwareVersion='1')
        self.assertEqual(answer['ErrorCode'], 0)
        return {k['ApiKey'] for k in answer['ApiKeys']}

    def test_each_tells_its_own_keys(self):
        with self.client() as c, self.controller() as n:
            of_clients, of_nodes = self.keys(c), self.keys(n)
        self.assertIn(PRODUCE, of_clients)
        self.assertNotIn(PRODUCE, of_nodes)
        self.assertIn(BROKER_HEARTBEAT, of_nodes)
        self.assertNotIn(BROKER_HEARTBEAT, of_clients)
        self.assertIn(API_VERSIONS, of_clients & of_nodes)

    def test_what_is_not_asked_there_ends_the_connection(self):
        with self.client() as c:
            c.send('BrokerHeartbeat', 0, BrokerId=1)
            self.assertRaises(kafka.Closed, c.receive)
        with self.controller() as c:
            c.send('Metadata', 12, Topics=[])
            self.assertRaises(kafka.Closed, c.receive)
        self.served_on()

    def test_a_node_is_answered(self):
        with self.controller() as c:
            answer = c.call('BrokerHeartbeat', 0, BrokerId=77, BrokerEpoch=1)
            self.assertEqual(answer['ErrorCode'], 77)  # STALE_BROKER_EPOCH
            c.connection.send(struct.pack('>i', 3) + b'abc')
            self.assertRaises(kafka.Closed, c.connection.answer)
        self.served_on()


if __name__ == '__main__':
    broker.main()
