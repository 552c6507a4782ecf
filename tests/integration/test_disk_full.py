"""A full disk, on a small tmpfs (root, or a user namespace of our own): error 56 for what does not
fit, reads and smaller writes go on, space that returns is used, nothing acknowledged is lost."""
import errno
import os
import shutil
import subprocess
import sys
import tempfile

import batches
import broker
import calls
import kafka
from broker import MB

DISK = 24 * MB
TIMED_OUT, NOT_COORDINATOR = 7, 16


def can_mount():
    """The prefix of a command that sees a tmpfs on the directory {dir}; None: not here."""
    mount = 'mount -t tmpfs -o size=%d,mode=0777 none {dir} && exec "$@"' % DISK
    for unshare in (['unshare', '-m'], ['unshare', '-rm']):
        probe = tempfile.mkdtemp(prefix='dohle-it-')
        try:
            done = subprocess.run(unshare + ['sh', '-c', mount.format(dir=probe), 'sh', 'true'],
                                  stderr=subprocess.DEVNULL, check=False)
            if done.returncode == 0:
                return unshare + ['sh', '-c', mount]
        except FileNotFoundError:
            return None
        finally:
            shutil.rmtree(probe, ignore_errors=True)
    return None


class DiskFull(broker.BrokerTest):
    def setUp(self):
        prefix = can_mount()
        if prefix is None:
            self.skipTest('no tmpfs can be mounted here')
        directory = tempfile.mkdtemp(prefix='dohle-it-')
        disk = os.path.join(directory, 'disk')
        os.mkdir(disk)
        prefix = [word.replace('{dir}', disk) for word in prefix] + ['sh']
        self.broker = broker.Broker({'log.segment.bytes': 4 * MB}, directory, prefix)
        self.broker.data = os.path.join(disk, 'data')
        self.addCleanup(self.broker.close)
        self.broker.start()
        # The same disk, seen from here.
        self.filler = '/proc/%d/root%s/filler' % (self.broker.process.pid, disk)
        self.disk = os.path.dirname(self.filler)

    def leave_free(self, bytes_n):
        """Grows the filler until so much is left; the broker may take some of it meanwhile."""
        with open(self.filler, 'ab', buffering=0) as f:
            for _ in range(1000):
                disk = os.statvfs(self.disk)
                over = disk.f_bavail * disk.f_frsize - bytes_n
                if over <= 0:
                    return
                try:
                    f.write(bytes(min(over, MB)))
                except OSError as e:
                    if e.errno != errno.ENOSPC:
                        raise

    def test_full_and_free_again(self):
        want = {0: [], 1: []}
        big, small = b'b' * (MB // 2), b's' * 100
        with self.broker.connect() as c:
            self.assertEqual(c.create_topic('full', 2), 0)

            def produce(partition, value):
                error, offset = c.produce('full', partition, [value])
                if error == 0:
                    want[partition].append((offset, value))
                return error

            for _ in range(4):
                self.assertEqual(produce(0, big), 0)
            self.assertEqual(produce(1, small), 0)
            for _ in range(3):
                self.leave_free(128 << 10)
                self.assertEqual(produce(0, big), kafka.STORAGE_ERROR)
                self.assertEqual(produce(1, small), 0)  # another partition, which fits
                self.assertEqual(c.read_all('full', 0), want[0])
                self.assertEqual(produce(0, small), 0)  # the same one
                self.assertEqual(produce(0, big), kafka.STORAGE_ERROR)
                os.unlink(self.filler)
                self.assertEqual(produce(0, big), 0)
            self.leave_free(0)
            self.assertEqual(produce(0, big), kafka.STORAGE_ERROR)
            self.assertEqual(c.read_all('full', 0), want[0])
            self.assertEqual(c.read_all('full', 1), want[1])
            os.unlink(self.filler)
            self.assertEqual(produce(1, small), 0)
            for partition, records in want.items():
                self.assertEqual(c.read_all('full', partition), records)
        self.served_on()
        self.assertIsNone(self.broker.process.poll())

    def test_topics_on_a_full_disk(self):
        """DU-02: what is known is told; a topic can go as soon as the change of metadata fits, and
        gives its room to the others. One that does not fit leaves nothing behind."""
        big = batches.build([(1700000000000, b'k', b'b' * (MB // 2))])
        with self.broker.connect() as c:
            for topic in ('kept', 'goes'):
                calls.ready(c, topic)
                for _ in range(8):
                    self.assertEqual(calls.produce(c, topic, 0, big)['ErrorCode'], 0)
            self.leave_free(0)
            self.assertEqual(calls.produce(c, 'kept', 0, big)['ErrorCode'], kafka.STORAGE_ERROR)
            made = ['goes', 'kept']
            while len(made) < 1000:
                answer = calls.create(c, 'new-%d' % len(made))
                if answer['ErrorCode'] != 0:
                    break
                made.append(answer['Name'])
            self.assertEqual(answer['ErrorCode'], kafka.STORAGE_ERROR)
            self.assertEqual(sorted(calls.topic_names(c)), sorted(made))
            os.unlink(self.filler)
            self.leave_free(64 << 10)
            answer = c.ask('DeleteTopics', 6, Topics=[{'Name': 'goes'}], TimeoutMs=10000)
            self.assertEqual(answer['Responses'][0]['ErrorCode'], 0)
            self.assertEqual(sorted(calls.topic_names(c)), sorted(made[1:]))
            self.poll(lambda: calls.produce(c, 'kept', 0, big)['ErrorCode'] == 0, timeout_s=90)
            self.assertEqual(calls.end_of(c, 'kept'), 9)
        self.served_on()

    def test_commits_on_a_full_disk(self):
        """DU-02: what does not fit is refused, what was committed before is told; a group that could
        not be written is not there."""
        with self.broker.connect() as c:
            calls.ready(c, 't')
            calls.until_coordinated(c, 'g')
            want = 0
            self.leave_free(0)
            error, metadata = 0, 'm' * 4000
            while error == 0 and want < 1000:
                want += 1
                error = calls.commit(c, 'g', 't', 0, want, metadata=metadata)
            self.assertEqual(error, NOT_COORDINATOR)
            want -= 1
            self.assertEqual(calls.commit(c, 'new', 't', 0, 5, metadata=metadata), NOT_COORDINATOR)
            self.assertEqual(calls.committed(c, 'g', 't', 0), (0, want or -1))
            self.assertEqual(calls.committed(c, 'new', 't', 0), (0, -1))
            listed = [g['GroupId'] for g in c.ask('ListGroups', 4)['Groups']]
            self.assertEqual(listed, ['g'] if want else [])
            joined = c.ask('JoinGroup', 3, GroupId='j' * 4000, SessionTimeoutMs=30000,
                           RebalanceTimeoutMs=30000, ProtocolType='consumer',
                           Protocols=[{'Name': 'range', 'Metadata': b'm' * 4000}])
            self.assertEqual(joined['ErrorCode'], NOT_COORDINATOR)
            os.unlink(self.filler)
            self.assertEqual(calls.commit(c, 'g', 't', 0, want + 7, metadata=metadata), 0)
            self.assertEqual(calls.committed(c, 'g', 't', 0), (0, want + 7))
        self.served_on()

    def test_records_are_deleted_on_a_full_disk(self):
        """DU-02: readers see the new start at once, and its room comes back; that it would be kept
        after a kill is told when it could be written down."""
        big = batches.build([(1700000000000, b'k', b'b' * (MB // 2))])
        with self.broker.connect() as c:
            calls.ready(c, 't', 1, {'segment.bytes': MB, 'file.delete.delay.ms': 100})
            for _ in range(16):
                self.assertEqual(calls.produce(c, 't', 0, big)['ErrorCode'], 0)
            self.leave_free(0)
            self.assertEqual(calls.produce(c, 't', 0, big)['ErrorCode'], kafka.STORAGE_ERROR)
            answer = c.ask('DeleteRecords', 2, TimeoutMs=1000, Topics=[
                {'Name': 't', 'Partitions': [{'PartitionIndex': 0, 'Offset': 10}]}])
            told = answer['Topics'][0]['Partitions'][0]
            self.assertIn((told['ErrorCode'], told['LowWatermark']), ((0, 10), (TIMED_OUT, 0)))
            self.assertEqual(calls.offset_of(c, 't', 0, calls.EARLIEST)[2], 10)
            self.poll(lambda: calls.produce(c, 't', 0, big)['ErrorCode'] == 0, timeout_s=90)
            self.assertEqual(calls.end_of(c, 't'), 17)
            answer = c.ask('DeleteRecords', 2, TimeoutMs=10000, Topics=[
                {'Name': 't', 'Partitions': [{'PartitionIndex': 0, 'Offset': 10}]}])
            told = answer['Topics'][0]['Partitions'][0]
            self.assertEqual((told['ErrorCode'], told['LowWatermark']), (0, 10))
        self.served_on()


if __name__ == '__main__':
    sys.exit(broker.main())
