"""The do-nothing server, limit/."""
import os
import shutil
import signal
import time

from servers.server import ROOT, START_S, Server, ServerFailed


class Limit(Server):
    """The do-nothing server: one topic of one name, which it does not know."""
    name = 'limit'
    has_topics = False
    topic = 'bench'
    program = os.path.join(ROOT, 'build', 'release', 'bench', 'bench-limit')
    sync = False

    def command(self):
        return [self.program, self.data(), self.topic] + ['sync'] * self.sync

    def start(self):
        self.spawn()
        end = time.monotonic() + START_S
        while not self.log_port():
            if self.process.poll() is not None or time.monotonic() > end:
                raise ServerFailed('the limit does not start')
            time.sleep(0.001)
        return self

    def log_port(self):
        with open(os.path.join(self.directory, 'stdout'), encoding='ascii') as f:
            text = f.read()
        if text.endswith('\n'):
            self.port = int(text)
        return text.endswith('\n')

    def create(self, topic, partitions=1, **configs):
        """It begins again with empty files."""
        self.stop(signal.SIGKILL)
        self.sync = configs.get('flush_messages') == 1
        self.start()

    def delete(self, topic):
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.data(), ignore_errors=True)
        self.sync = False
        self.start()
