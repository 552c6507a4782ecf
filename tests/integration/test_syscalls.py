"""What a pipeline costs: 64 small produces that come together are read by at most two calls,
written by one per log and answered by at most two; seen by strace."""
import os
import re
import shutil
import subprocess
import time

import broker
import kafka

CALLS = 'read,recvfrom,recvmsg,readv,write,writev,sendto,sendmsg,sendmmsg,sendfile,pwrite64,' \
    'pwritev,pwritev2,epoll_ctl,timerfd_settime,fsync,fdatasync'
# "1234 1700000000.1 sendmsg(12<TCP:[...]>, ...) = 640"; unfinished calls are resumed on a later
# line without their descriptor, so the descriptor is taken from the first line.
CALL = re.compile(r'^\d+ +(\w+)\((\d+)<([^>]*(?:\[[^\]]*\])?[^>]*)>(.*)$')


def can_trace():
    if shutil.which('strace') is None:
        return False
    return subprocess.run(['strace', '-f', '-o', '/dev/null', 'true'], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


class Syscalls(broker.BrokerTest):
    def setUp(self):
        if not can_trace():
            self.skipTest('strace is missing or may not trace')
        self.broker = broker.Broker()
        self.trace = os.path.join(self.broker.directory, 'trace')
        # -D: our child is the broker, strace ends with it.
        self.broker.prefix = ['strace', '-D', '-f', '-yy', '-s', '0', '-e', 'trace=' + CALLS, '-o',
                              self.trace]
        # LeakSanitizer cannot look when another traces.
        os.environ['ASAN_OPTIONS'] = 'detect_leaks=0:' + os.environ.get('ASAN_OPTIONS', '')
        self.addCleanup(self.broker.close)
        self.broker.start(120)

    def calls_since(self, offset):
        """(call, what it was on, rest) until nothing more comes."""
        size = -1
        while size != os.path.getsize(self.trace):
            size = os.path.getsize(self.trace)
            time.sleep(0.3)
        with open(self.trace) as f:
            f.seek(offset)
            return [m.groups() for m in map(CALL.match, f.read().splitlines()) if m]

    def pipeline(self, c, first, n):
        body = kafka.produce_body('few', 0, kafka.batch([b'v' * 100]))
        offset = os.path.getsize(self.trace)
        c.send(b''.join(kafka.frame(kafka.PRODUCE, body, first + i) for i in range(n)))
        for i in range(n):
            correlation_id, data = c.answer()
            self.assertEqual(correlation_id, first + i)
            self.assertEqual(kafka.produce_answer(data)[0], 0)
        return self.calls_since(offset)

    def test_pipelined_produces(self):
        with self.broker.connect() as c:
            c.create_topic('few')
            self.pipeline(c, 0, 64)  # the first makes files
            calls = self.pipeline(c, 64, 64)
        reads = [x for x in calls if x[0] in ('read', 'readv', 'recvfrom', 'recvmsg') and
                 'TCP' in x[2] and ' EAGAIN ' not in x[3]]
        sends = [x for x in calls if x[0] in ('write', 'writev', 'sendto', 'sendmsg', 'sendmmsg')
                 and 'TCP' in x[2]]
        appends = [x for x in calls if x[0].startswith(('write', 'pwrite')) and
                   x[2].endswith('.log') and '/few-0/' in x[2]]
        others = [x for x in calls if x not in reads + sends + appends]
        print('64 pipelined produces: %d reads, %d sends, %d appends, %d others %s' %
              (len(reads), len(sends), len(appends), len(others),
               sorted({x[0] for x in others})), flush=True)
        self.assertTrue(1 <= len(reads) <= 2, reads)
        self.assertTrue(1 <= len(sends) <= 2, sends)
        self.assertEqual(len(appends), 1, appends)
        self.assertEqual([x for x in calls if x[0] in ('epoll_ctl', 'timerfd_settime')], [])


if __name__ == '__main__':
    broker.main()
