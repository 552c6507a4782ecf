"""ApiVersions, request headers, versions: cases AV."""
import os
import struct

import broker
import calls
import kafka
import messages

# What Apache Kafka 4.4 advertises of what is served here; Produce from 0, because old librdkafka
# looks there.
KAFKAS = {0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 18: (0, 5), 19: (2, 7), 20: (1, 6),
          22: (0, 5), 23: (2, 4), 60: (0, 2)}


class Versions(broker.BrokerTest):
    def versions(self, c, version, **fields):
        if version >= 3:
            fields = {'ClientSoftwareName': 'test', 'ClientSoftwareVersion': '1.0', **fields}
        return c.ask('ApiVersions', version, **fields)

    def test_answer_has_no_tags_in_its_header(self):
        """AV-01: flexible in its body alone."""
        with self.broker.connect() as c:
            for version in (3, 4, 5):
                body = messages.request('ApiVersions', version, {
                    'ClientSoftwareName': 'a', 'ClientSoftwareVersion': '1'}, 7)
                c.send(struct.pack('>i', len(body)) + body)
                correlation_id, data = c.answer()
                self.assertEqual(correlation_id, 7)
                self.assertEqual(data[:2], b'\0\0')
                keys = messages.response('ApiVersions', version, data)['ApiKeys']
                self.assertEqual(data[2], len(keys) + 1)

    def test_every_version_tells_the_same(self):
        with self.broker.connect() as c:
            told = [self.versions(c, version)['ApiKeys'] for version in range(6)]
            for keys in told[1:]:
                self.assertEqual(keys, told[0])

    def test_served_versions_are_kafkas(self):
        """AV-06 (c): contiguous, as one release has them."""
        with self.broker.connect() as c:
            found = {k['ApiKey']: (k['MinVersion'], k['MaxVersion'])
                     for k in self.versions(c, 3)['ApiKeys']}
        self.assertEqual({key: found.get(key) for key in KAFKAS}, KAFKAS)

    def test_unknown_version_is_answered_in_v0(self):
        """AV-02: error 35, the range of key 18, and the connection serves on."""
        with self.broker.connect() as c:
            for version in (6, 99, 32767, -1):
                c.send(kafka.frame(kafka.API_VERSIONS, b'\0' + os.urandom(40), version, version))
                correlation_id, data = c.answer()
                self.assertEqual(correlation_id, version)
                answer = messages.response('ApiVersions', 0, data)
                self.assertEqual(answer['ErrorCode'], 35)
                self.assertEqual(answer['ApiKeys'],
                                 [{'ApiKey': 18, 'MinVersion': 0, 'MaxVersion': 5}])
                self.assertEqual(self.versions(c, 0)['ErrorCode'], 0)

    def test_names_of_software(self):
        """KIP-511: what is no name or version is refused; the connection serves on."""
        with self.broker.connect() as c:
            for name in ('', ' ', '-a', 'a-', 'a b', 'a/b'):
                for field in ('ClientSoftwareName', 'ClientSoftwareVersion'):
                    self.assertEqual(self.versions(c, 3, **{field: name})['ErrorCode'], 42, name)
            self.assertEqual(self.versions(c, 3, ClientSoftwareName='a-b.c')['ErrorCode'], 0)

    def test_expected_node(self):
        """KIP-1242: a client that meant another cluster or node is sent to bootstrap again."""
        with self.broker.connect() as c:
            m = c.ask('Metadata', 12, Topics=[])
            own = {'ClusterId': m['ClusterId'], 'NodeId': m['ControllerId']}
            for other, error in (({}, 0), ({'NodeId': 77}, 129), ({'ClusterId': 'other'}, 129),
                                 ({'NodeId': -1}, 42), ({'ClusterId': None}, 42), ({'NodeId': -2}, 129),
                                 ({'ClusterId': None, 'NodeId': -2}, 42)):
                self.assertEqual(self.versions(c, 5, **{**own, **other})['ErrorCode'], error, other)

    def test_finalized_features(self):
        """The levels that a fresh cluster of Kafka 4.4 begins with; kraft.version is no record."""
        with self.broker.connect() as c:
            found = {f['Name']: (f['MinVersionLevel'], f['MaxVersionLevel'])
                     for f in self.versions(c, 4)['FinalizedFeatures']}
        self.assertEqual(found, {
            'metadata.version': (33, 33), 'eligible.leader.replicas.version': (1, 1),
            'group.version': (1, 1), 'kraft.version': (1, 1), 'share.version': (2, 2),
            'streams.version': (1, 1), 'transaction.version': (2, 2)})

    def test_answer_follows_the_metadata(self):
        """The answer is kept: the same again until there is a new record, then another, in every version."""
        with self.broker.connect() as c:
            for version in (3, 4, 5):
                first = self.versions(c, version)
                self.assertEqual(self.versions(c, version), first)
                calls.create(c, 'versions-%d' % version)
                then = self.versions(c, version)
                self.assertGreater(then.pop('FinalizedFeaturesEpoch'), first.pop('FinalizedFeaturesEpoch'))
                self.assertEqual(then, first)

    def test_client_id_may_be_null(self):
        with self.broker.connect() as c:
            for version in (0, 3):
                data = messages.request('ApiVersions', version, {
                    'ClientSoftwareName': 'a', 'ClientSoftwareVersion': '1'}, 5, None)
                c.send(struct.pack('>i', len(data)) + data)
                self.assertEqual(c.answer()[0], 5)


class Refused(broker.BrokerTest):
    def test_what_is_not_served_closes_its_connection_alone(self):
        """AV-06 (a), (b): one log line, no answer, the others go on."""
        with self.broker.connect() as other:
            other.ask('ApiVersions', 0)
            refused = [(999, 0), (-1, 0), (0, 2), (1, 3), (1, 19), (2, 0), (3, 14), (19, 1), (60, 3),
                       (52, 0), (62, 0)]
            for key, version in refused:
                with self.broker.connect() as c:
                    c.send(struct.pack('>ihhih', 10, key, version, 1, -1))
                    with self.assertRaises(kafka.Closed):
                        c.answer()
                other.ask('ApiVersions', 0)
            self.assertEqual(len(self.broker.log_lines('request_refused')), len(refused))
        self.alive()


if __name__ == '__main__':
    broker.main()
