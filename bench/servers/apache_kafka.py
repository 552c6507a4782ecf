"""Apache Kafka from Maven's jars."""
import os
import subprocess

from servers.process import free_port
from servers.server import ROOT, SETTING, Server


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
