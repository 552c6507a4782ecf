"""What stands between the nodes: a port per listener that others dial. From a connection's first moment it is
known which node dials, by the process that owns the socket, and which is dialled; so each way between two nodes
can be held, slowed and broken for itself, whoever opened the connection.

What is held arrives when the way is open again, as after a network's outage, the end of a connection too."""

import asyncio
import os
import threading

CHUNK = 1 << 16


def socket_of(port, peer_port):
    """The inode of the socket at PORT that is connected to PEER_PORT, both on 127.0.0.1. (Java's are of IPv6.)"""
    local, remote = ("0100007F:%04X" % p for p in (port, peer_port))
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path, encoding="ascii") as f:
            for line in f:
                fields = line.split()
                if fields[1].endswith(local) and fields[2].endswith(remote):
                    return fields[9]
    return None


def owns(pid, inode):
    wanted, folder = "socket:[%s]" % inode, "/proc/%d/fd" % pid
    try:
        for fd in os.listdir(folder):
            try:
                if os.readlink(os.path.join(folder, fd)) == wanted:
                    return True
            except FileNotFoundError:
                pass
    except FileNotFoundError:  # the process ended
        pass
    return False


class Way:
    """From one node to another."""

    def __init__(self):
        self.open = asyncio.Event()
        self.open.set()
        self.delay_s = 0

    async def pass_by(self):
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        await self.open.wait()


class Proxy:
    """pids: {pid: node id} of the nodes that run, when called. A thread of its own; every method may be called from outside."""

    def __init__(self, pids):
        self.pids = pids
        self.ways = {}
        self.servers = []
        self.connections = {}  # task -> the two nodes
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    # ------------------------------------------------------------------ what is done to the network

    def listen(self, port, target, target_port):
        """At PORT one reaches the node TARGET."""

        async def accept(reader, writer):
            await self.connection(reader, writer, target, target_port)

        self.servers.append(self.do(asyncio.start_server(accept, "127.0.0.1", port)))

    def hold(self, *ways):
        """ways: (from, to). Nothing arrives there until heal()."""

        async def run():
            for way in ways:
                self.way(*way).open.clear()

        self.do(run())

    def slow(self, delay_s, *ways):
        async def run():
            for way in ways:
                self.way(*way).delay_s = delay_s

        self.do(run())

    def cut(self, a, b):
        """Ends the connections between the two; new ones may come."""

        async def run():
            for task, nodes in list(self.connections.items()):
                if nodes == {a, b}:
                    task.cancel()

        self.do(run())

    def heal(self):
        async def run():
            for way in self.ways.values():
                way.open.set()
                way.delay_s = 0

        self.do(run())

    def close(self):
        async def run():
            for server in self.servers:
                server.close()
            tasks = list(self.connections)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.do(run())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    # ------------------------------------------------------------------ in the thread

    def way(self, a, b):
        return self.ways.setdefault((a, b), Way())

    def dialler(self, writer):
        _, port = writer.get_extra_info("sockname")
        _, peer_port = writer.get_extra_info("peername")
        inode = socket_of(peer_port, port)
        return next((node for pid, node in self.pids().items() if inode and owns(pid, inode)), None)

    async def connection(self, reader, writer, target, target_port):
        source = self.dialler(writer)
        task = asyncio.current_task()
        self.connections[task] = {source, target}
        there = None
        try:
            if source is None:
                return
            await self.way(source, target).pass_by()
            target_reader, there = await asyncio.open_connection("127.0.0.1", target_port)
            pumps = [
                asyncio.ensure_future(self.pump(self.way(source, target), reader, there)),
                asyncio.ensure_future(self.pump(self.way(target, source), target_reader, writer)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for p in pumps:
                    p.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            del self.connections[task]
            for w in (writer, there):
                if w is not None:
                    w.transport.abort()

    async def pump(self, way, reader, writer):
        while data := await reader.read(CHUNK):
            await way.pass_by()
            writer.write(data)
            await writer.drain()
        await way.pass_by()
