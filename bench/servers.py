"""The three that are measured. Each runs in a directory of its own on a port of its own and is ended by
its id."""
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
import calls  # pylint: disable=wrong-import-position
import kafka  # pylint: disable=wrong-import-position

START_S = 180
SETTING = 'log.segment.delete.delay.ms=1000'  # deleted topics do not pile up between rows


class ServerFailed(Exception):
    pass


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def raise_fd_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def memory_mb(pid, field='VmRSS'):
    with open('/proc/%d/status' % pid, encoding='ascii') as f:
        for line in f:
            if line.startswith(field + ':'):
                return int(line.split()[1]) / 1024
    raise ServerFailed('no %s of %d' % (field, pid))


def cpu_seconds(pid):
    """User and system time so far."""
    with open('/proc/%d/stat' % pid, encoding='ascii') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Server:
    """What the rows use of each of them."""
    has_topics = True

    def __init__(self, directory):
        self.directory = os.path.join(directory, self.name)
        self.process = None
        self.port = free_port()

    @property
    def pid(self):
        return self.process.pid

    def command(self):
        raise NotImplementedError

    def format(self):
        """What must be done to an empty directory before the first start."""

    def spawn(self):
        """Runs it, without waiting."""
        os.makedirs(self.directory, exist_ok=True)
        with open(os.path.join(self.directory, 'stderr'), 'ab') as err, \
                open(os.path.join(self.directory, 'stdout'), 'wb') as out:
            # What counts connections and files must not depend on the shell's limit.
            self.process = subprocess.Popen(self.command(), stdout=out, stderr=err,
                                            stdin=subprocess.DEVNULL)

    def wait(self, check, timeout_s=START_S):
        """Polls until check(connection) is true; what stands in its way until then is no error."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise ServerFailed('%s ended with %d:\n%s' % (self.name, self.process.returncode, self.log()))
            try:
                with self.connect() as c:
                    while not check(c):
                        if time.monotonic() > end:
                            break
                        time.sleep(0.0002)
                    else:
                        return
            except (OSError, kafka.Closed):
                time.sleep(0.0002)
        raise ServerFailed('%s is not ready:\n%s' % (self.name, self.log()))

    def start(self):
        self.format()
        self.spawn()
        self.wait(answers)
        return self

    def log(self):
        with open(os.path.join(self.directory, 'stderr'), 'rb') as f:
            return f.read().decode(errors='replace')[-2000:]

    def connect(self, timeout_s=120):
        return kafka.Connection(self.port, timeout_s)

    def create(self, topic, partitions=1, **configs):
        """configs: names with _ for the dot."""
        configs = {k.replace('_', '.'): v for k, v in configs.items()}
        with self.connect() as c:
            answer = calls.create(c, topic, partitions, configs)
            if answer['ErrorCode'] != 0:
                raise ServerFailed('%s: create %s: %s' % (self.name, topic, answer))
            end = time.monotonic() + START_S
            while not led(c, topic, partitions):
                if time.monotonic() > end:
                    raise ServerFailed('%s: %s has no leaders' % (self.name, topic))
                time.sleep(0.02)

    def delete(self, topic):
        """Returns when its bytes are gone."""
        with self.connect() as c:
            answer = c.ask('DeleteTopics', 5, TopicNames=[topic], TimeoutMs=30000)
            if answer['Responses'][0]['ErrorCode'] != 0:
                raise ServerFailed('%s: delete %s: %s' % (self.name, topic, answer))
        end = time.monotonic() + START_S
        while any(d.startswith(topic) for d in os.listdir(self.data())):
            if time.monotonic() > end:
                raise ServerFailed('%s: the files of %s stay' % (self.name, topic))
            time.sleep(0.1)

    def data(self):
        return os.path.join(self.directory, 'data')

    def stop(self, how=signal.SIGTERM):
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def remove(self):
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)


def answers(c):
    return c.ask('ApiVersions', 0)['ErrorCode'] == 0


def led(c, topic, partitions):
    """Every partition has a leader that answers for it."""
    found = calls.metadata(c, [topic])['Topics'][0]
    if found['ErrorCode'] != 0 or len(found['Partitions']) != partitions or \
            any(p['ErrorCode'] != 0 for p in found['Partitions']):
        return False
    answer = c.ask('ListOffsets', 7, ReplicaId=-1, Topics=[{'Name': topic, 'Partitions': [
        {'PartitionIndex': i, 'Timestamp': calls.LATEST} for i in range(partitions)]}])
    return all(p['ErrorCode'] == 0 for p in answer['Topics'][0]['Partitions'])


class Dohle(Server):
    name = 'Dohle'
    program = os.path.join(ROOT, 'build', 'release', 'dohle')

    def command(self):
        return [self.program, 'start', '--data', self.data(), '--port', str(self.port), '--set', SETTING]


class Kafka(Server):
    """With the flags of its own start scripts. compat/kafka.sh knows where the jars are."""
    name = 'Kafka'
    heap = ['-Xmx1G', '-Xms1G']
    jvm = ['-server', '-XX:+UseG1GC', '-XX:MaxGCPauseMillis=20', '-XX:InitiatingHeapOccupancyPercent=35',
           '-XX:+ExplicitGCInvokesConcurrent', '-Djava.awt.headless=true']
    prepare = '''
        . "$1/compat/common.sh"; . "$1/compat/kafka.sh"
        trap - EXIT; rm -r "$work"; work=$2 port=$3 kafka_controller_port=$4
        fetch_kafka && kafka_properties "$2/data" CONTROLLER $5 > "$2/properties" &&
            kafka_log4j WARN && echo "$kafka_jars"'''

    def __init__(self, directory):
        super().__init__(directory)
        self.log4j = self.jars = None

    def prepared(self):
        if self.jars is None:
            os.makedirs(self.directory, exist_ok=True)
            out = subprocess.run(['bash', '-c', self.prepare, 'bash', ROOT, self.directory, str(self.port),
                                  str(free_port()), SETTING], stdout=subprocess.PIPE, check=True)
            self.log4j, self.jars = out.stdout.decode().split()

    def java(self, heap, name, *arguments):
        self.prepared()
        return ['java', *heap, *self.jvm, self.log4j, '-cp', self.jars + '/*', name, *arguments]

    def command(self):
        return self.java(self.heap, 'kafka.Kafka', os.path.join(self.directory, 'properties'))

    def format(self):
        if os.path.exists(os.path.join(self.data(), 'meta.properties')):
            return
        subprocess.run(self.java(['-Xmx256M'], 'kafka.tools.StorageTool', 'format', '--standalone', '-t',
                                 '5L6g3nShT-eMCtK--X86sw', '-c', os.path.join(self.directory, 'properties')),
                       stdout=subprocess.DEVNULL, check=True)


class Limit(Server):
    """The do-nothing server: one topic of one name, which it does not know."""
    name = 'limit'
    has_topics = False
    topic = 'bench'
    program = os.path.join(ROOT, 'build', 'release', 'bench', 'bench-limit')
    sync = False

    def command(self):
        return [self.program, os.path.join(self.directory, 'file'), self.topic] + ['sync'] * self.sync

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
        """It begins again with an empty file."""
        self.stop(signal.SIGKILL)
        self.sync = configs.get('flush_messages') == 1
        self.start()

    def delete(self, topic):
        self.stop(signal.SIGKILL)
        path = os.path.join(self.directory, 'file')
        if os.path.exists(path):
            os.unlink(path)
        self.sync = False
        self.start()


ALL = (Dohle, Kafka, Limit)
