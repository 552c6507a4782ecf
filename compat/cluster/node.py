"""One node: its process, its directory, its ports. They stay the same over restarts; Dohle and Apache Kafka are
told the same by the same file of properties."""

import os
import random
import shutil
import signal
import socket
import subprocess

LISTENERS = ("CLIENTS", "INTERNAL", "CONTROLLER")
START_S = 120


def free_ports(n):
    """Below those that the system gives to outgoing connections: a port must still be free when a node starts again."""
    found, held = [], []
    try:
        while len(found) < n:
            port = random.randrange(15000, 32000)
            s = socket.socket()
            held.append(s)
            try:
                s.bind(("127.0.0.1", port))
                found.append(port)
            except OSError:
                pass
    finally:
        for s in held:
            s.close()
    return found


class Node:
    """advertised: how the other nodes reach it, a port per listener; a proxy may stand there."""

    def __init__(self, node_id, directory, cluster_id):
        self.id = node_id
        self.directory = os.path.join(directory, str(node_id))
        self.data = os.path.join(self.directory, "data")
        self.cluster_id = cluster_id
        self.ports = dict(zip(LISTENERS, free_ports(len(LISTENERS))))
        self.advertised = dict(self.ports)
        self.process = None
        self.paused = False
        os.makedirs(self.directory, exist_ok=True)

    @property
    def port(self):
        return self.ports["CLIENTS"]

    @property
    def pid(self):
        return self.process.pid

    def properties_file(self):
        return os.path.join(self.directory, "server.properties")

    def log_file(self):
        return os.path.join(self.directory, "log")

    def configure(self, voters, settings):
        """voters: {id: port}; settings: what comes on top, for all nodes; in them {id} is the node's own."""

        def at(ports):
            return ",".join("%s://127.0.0.1:%d" % item for item in ports.items())

        lines = {
            "process.roles": "broker,controller",
            "node.id": self.id,
            "controller.quorum.voters": ",".join("%d@127.0.0.1:%d" % item for item in sorted(voters.items())),
            "listeners": at(self.ports),
            "advertised.listeners": at(self.advertised),
            "listener.security.protocol.map": ",".join(name + ":PLAINTEXT" for name in LISTENERS),
            "inter.broker.listener.name": "INTERNAL",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data,
            **self.own_settings(),
            **settings,
        }
        with open(self.properties_file(), "w", encoding="utf-8") as f:
            f.writelines("%s=%s\n" % (k, str(v).replace("{id}", str(self.id))) for k, v in lines.items())

    # ------------------------------------------------------------------ what differs

    def own_settings(self):
        return {}

    def format(self):
        """What an empty directory needs before the first start."""

    def start_command(self):
        raise NotImplementedError

    def ended_well(self, code):
        raise NotImplementedError

    # ------------------------------------------------------------------ the process

    def start(self):
        """Runs it, without waiting; an empty directory is formatted first."""
        if not os.path.exists(os.path.join(self.data, "meta.properties")):
            self.format()
        with open(self.log_file(), "ab") as log:
            self.process = subprocess.Popen(self.start_command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def answers(self):
        """It is there, and may be asked."""
        return self.runs() and not self.paused

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def kill(self):
        if self.runs():
            self.process.kill()
            self.process.wait()
        self.paused = False

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait_for_end(self, timeout_s):
        """Whether it ended well by itself in that time; it has ended in any case."""
        try:
            return self.ended_well(self.process.wait(timeout_s))
        except subprocess.TimeoutExpired:
            self.kill()
            return False

    def empty(self):
        shutil.rmtree(self.data)

    def log_tail(self):
        with open(self.log_file(), "rb") as f:
            return f.read()[-3000:].decode(errors="replace")


class DohleNode(Node):
    def __init__(self, node_id, directory, cluster_id, program):
        super().__init__(node_id, directory, cluster_id)
        self.program = program

    def own_settings(self):
        return {"cluster.id": self.cluster_id}  # so it formats an empty directory itself

    def start_command(self):
        return [self.program, "start", "-c", self.properties_file()]

    def ended_well(self, code):
        return code == 0


class KafkaNode(Node):
    """java: the command with its flags and class path, up to the class."""

    def __init__(self, node_id, directory, cluster_id, java):
        super().__init__(node_id, directory, cluster_id)
        self.java = java

    def format(self):
        command = self.java + ["kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", self.properties_file()]
        with open(self.log_file(), "ab") as log:
            subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=True, timeout=START_S)

    def start_command(self):
        return self.java + ["kafka.Kafka", self.properties_file()]

    def ended_well(self, code):
        return code in (143, -signal.SIGTERM)
