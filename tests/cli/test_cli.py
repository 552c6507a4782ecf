#!/usr/bin/env python3
"""dohle's command line: usage, configuration, ready line, ports file, signals, exit status.

  test_cli.py PROGRAM
"""
import os
import signal
import socket
import struct
import subprocess

from case import DOHLE, WAIT_S, Case, free_port, main


class Usage(Case):
    def test_mistakes_give_one_line_and_a_hint(self):
        for args, what, hint in [
                ([], "a command is missing", "dohle --help"),
                (["nonsense"], "unknown command nonsense", "dohle --help"),
                (["--nonsense"], "unknown option --nonsense", "dohle --help"),
                (["help", "nonsense"], "unknown command nonsense", "dohle --help"),
                (["help", "start", "x"], "help takes one command", "dohle --help"),
                (["start", "--nonsense"], "unknown option --nonsense", "dohle start --help"),
                (["start", "--nonsense=1"], "unknown option --nonsense", "dohle start --help"),
                (["start", "-x"], "unknown option -x", "dohle start --help"),
                (["start", "operand"], "unexpected argument operand", "dohle start --help"),
                (["start", "--", "--port"], "unexpected argument --port", "dohle start --help"),
                (["start", "--port"], "--port needs N", "dohle start --help"),
                (["start", "--port", "x"], "--port needs a number", "dohle start --help"),
                (["start", "--port", "65536"], "--port needs a number", "dohle start --help"),
                (["start", "--port", "-1"], "--port needs a number", "dohle start --help"),
                (["start", "--port", ""], "--port needs a number", "dohle start --help"),
                (["start", "--set", "x"], "--set needs KEY=VALUE", "dohle start --help"),
                (["start", "--set", "=x"], "--set needs KEY=VALUE", "dohle start --help"),
                (["start", "--data", ""], "--data needs DIR", "dohle start --help"),
                (["start", "--ports-file="], "--ports-file needs FILE", "dohle start --help"),
                (["start", "--help=yes"], "--help takes no value", "dohle start --help"),
                (["start", "-c", "a", "-cb"], "--config is given twice", "dohle start --help"),
                (["start", "a\nb"], "unexpected argument a?b", "dohle start --help"),
        ]:
            with self.subTest(args=args):
                r = self.run_dohle(*args)
                self.assertEqual(r.returncode, 2)
                self.assertEqual(r.stdout, "")
                lines = r.stderr.splitlines()
                self.assertEqual(len(lines), 2, r.stderr)
                self.assertTrue(lines[0].startswith("dohle: " + what), lines[0])
                self.assertEqual(lines[1], f"Try '{hint}'.")

    def test_version_and_help(self):
        r = self.run_dohle("--version")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertRegex(r.stdout, r"^Dohle \d+\.\d+\.\d+\n$")
        for args in (["--help"], ["-h"], ["help"]):
            r = self.run_dohle(*args)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertIn("\n  start ", r.stdout)
        first = self.run_dohle("start", "--help")
        self.assertEqual((first.returncode, first.stderr), (0, ""))
        for option in ("--config", "--set", "--data", "--port", "--ports-file", "--help"):
            self.assertIn(option, first.stdout)
        for args in (["help", "start"], ["start", "-h"], ["start", "--port", "1", "--help"]):
            self.assertEqual(self.run_dohle(*args).stdout, first.stdout)
        self.assertLess(max(map(len, first.stdout.splitlines())), 100)

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            r = subprocess.run([DOHLE, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(r.returncode, 1)
        self.assertIn("cannot write", r.stderr)


class Configuration(Case):
    def refused(self, *args, env=None, says=()):
        r = self.run_dohle("start", "--port", "0", *args, env=env)
        self.assertEqual((r.returncode, r.stdout), (78, ""), r.stderr)
        errors = [line for line in r.stderr.splitlines() if line.startswith("dohle: ")]
        self.assertEqual(len(errors), 1, r.stderr)
        for text in says:
            self.assertIn(text, errors[0])

    def test_bad_values_are_refused(self):
        self.refused("--data", self.data, "--set", "num.partitions=0", says=["num.partitions", "0", "[1,...]"])
        path = self.write("bad.properties", "# comment\nnode.id=1\nlog.cleanup.policy=burn\n")
        self.refused("-c", path, says=["bad.properties:3: ", "log.cleanup.policy", "burn", "[compact, delete]"])
        self.refused("--set", "process.roles=controller", says=["node.id must be set"])
        self.refused("--set", "process.roles=controller", "--set", "node.id=1", "--set", "listeners=C://:0",
                     "--set", "controller.listener.names=C", "--set", "controller.quorum.voters=1@localhost:1",
                     "--port", "1", says=["--port", "no listener for clients"])
        self.refused("--set", "listeners=SSL://:1", says=["SSL is not served yet"])
        self.assertFalse(os.path.exists(self.data))

    def test_files_and_directories_that_cannot_be(self):
        self.refused("-c", "missing", says=["missing", "No such file"])
        self.refused("-c", self.dir, says=[self.dir, "Is a directory"])
        self.refused("--data", self.write("file", ""), says=["data directory", "Not a directory"])
        self.refused("--data", self.dir + "/file/below", says=["data directory", "Not a directory"])
        self.refused("--data", self.data, "--ports-file", self.dir, says=["ports file", "Is a directory"])
        with open(f"{self.dir}/large", "wb") as f:
            f.truncate((1 << 20) + 1)
        self.refused("-c", "large", says=["large", "too large"])

    def test_no_home_no_data(self):
        r = subprocess.run([DOHLE, "start"], capture_output=True, text=True, env={}, timeout=WAIT_S)
        self.assertEqual(r.returncode, 78)
        self.assertIn("--data", r.stderr)


class Serving(Case):
    def test_ready_ports_file_and_a_clean_stop(self):
        for number in (signal.SIGTERM, signal.SIGINT):  # the second start finds a formatted directory
            self.write("ports", "stale\n")
            p = self.start("--data", self.data, "--port", "0", "--ports-file", self.ports)
            host, port = self.ready(p)
            self.assertEqual(host, "127.0.0.1")
            with open(self.ports, encoding="utf-8") as f:
                self.assertEqual(f.read(), f"PLAINTEXT 127.0.0.1 {port}\n")
            socket.create_connection((host, port), WAIT_S).close()
            self.assertEqual(sorted(os.listdir(self.dir)), ["data", "ports"])
            status, out, err = self.stop(p, number)
            self.assertEqual((status, out), (0, ""), err)
            with self.assertRaises(OSError):
                socket.create_connection((host, port), WAIT_S)

    def test_the_port_that_is_asked_for(self):
        port = free_port()
        p = self.start("--data", self.data, f"--port={port}")
        self.assertEqual(self.ready(p), ("127.0.0.1", port))
        self.assertEqual(self.stop(p)[0], 0)

    def test_data_in_the_state_directory(self):
        for env, where in (({"HOME": self.dir + "/h", "XDG_STATE_HOME": ""}, "/h/.local/state/dohle"),
                           ({"HOME": self.dir + "/h", "XDG_STATE_HOME": "relative"}, "/h/.local/state/dohle"),
                           ({"HOME": "/nowhere", "XDG_STATE_HOME": self.dir + "/x"}, "/x/dohle")):
            p = self.start("--port", "0", env=env)
            self.ready(p)
            self.assertTrue(os.path.exists(self.dir + where + "/meta.properties"))
            self.assertEqual(self.stop(p)[0], 0)
        self.assertFalse(os.path.exists(self.dir + "/relative"))

    def test_file_then_options(self):
        path = self.write("server.properties", "node.id=7\nno.such.key=1\nlog.dirs=elsewhere\n"
                          "listeners=A://[::1]:0,CONTROLLER://127.0.0.1:0\ncontroller.listener.names=CONTROLLER\n"
                          "listener.security.protocol.map=A:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
                          "num.partitions=3\n")
        port = free_port()
        p = self.start("-c", path, "--set", "node.id=8", "--data", "data", "--port", str(port), "--ports-file", "ports")
        self.assertEqual(self.ready(p), ("[::1]", port))
        with open(self.ports, encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.assertEqual(lines[0], f"A ::1 {port}")
        self.assertRegex(lines[1], r"^CONTROLLER 127\.0\.0\.1 [1-9]\d*$")
        with open(self.data + "/meta.properties", encoding="utf-8") as f:
            self.assertIn("node.id=8\n", f.read())
        self.assertFalse(os.path.exists(self.dir + "/elsewhere"))
        status, _, err = self.stop(p)
        self.assertEqual(status, 0, err)
        self.assertIn("WARN config_unknown key=no.such.key\n", err)

    def test_wildcard_listener_warns_about_its_address(self):
        p = self.start("--data", self.data, "--set", "listeners=PLAINTEXT://0.0.0.0:0")
        self.assertEqual(self.ready(p)[0], "127.0.0.1")
        status, _, err = self.stop(p)
        self.assertEqual(status, 0, err)
        self.assertIn("WARN listener_local name=PLAINTEXT advertised=127.0.0.1", err)
        p = self.start("--data", self.data, "--set", "listeners=PLAINTEXT://0.0.0.0:0", "--set",
                       "advertised.listeners=PLAINTEXT://some.where:1234")
        self.assertEqual(self.ready(p)[0], "some.where")
        self.assertNotIn("listener_local", self.stop(p)[2])

    def test_a_ports_file_that_cannot_be_written_stops_the_start(self):
        p = self.start("--data", self.data, "--port", "0", "--ports-file", "missing/ports")
        out, err = p.communicate(timeout=WAIT_S)
        self.assertEqual((p.returncode, out), (1, ""), err)
        self.assertIn("ports file missing/ports", err)

    def test_two_on_one_directory_or_port(self):
        p = self.start("--data", self.data, "--port", "0")
        _, port = self.ready(p)
        second = self.run_dohle("start", "--data", self.data, "--port", "0")
        self.assertEqual((second.returncode, second.stdout), (78, ""), second.stderr)
        self.assertIn(self.data, second.stderr)
        second = self.run_dohle("start", "--data", self.dir + "/other", "--port", str(port))
        self.assertEqual((second.returncode, second.stdout), (78, ""), second.stderr)
        self.assertIn(str(port), second.stderr)
        self.assertEqual(self.stop(p)[0], 0)

    def test_ids_of_the_directory(self):
        p = self.start("--data", self.data, "--port", "0", "--set", "cluster.id=MkU3OEVBNTcwNTJENDM2Qg")
        self.ready(p)
        self.assertEqual(self.stop(p)[0], 0)
        p = self.start("--data", self.data, "--port", "0")
        self.ready(p)
        self.assertEqual(self.stop(p)[0], 0)
        for key in ("node.id=2", "cluster.id=AAAAAAAAAAAAAAAAAAAAAg"):
            r = self.run_dohle("start", "--data", self.data, "--port", "0", "--set", key)
            self.assertEqual(r.returncode, 78, r.stderr)
            self.assertIn(key.split("=")[0], r.stderr)

    def test_a_second_signal_stops_at_once(self):
        p = self.start("--data", self.data, "--port", "0")
        self.ready(p)
        p.send_signal(signal.SIGSTOP)  # so that both wait for it
        p.send_signal(signal.SIGTERM)
        p.send_signal(signal.SIGINT)
        p.send_signal(signal.SIGCONT)
        out, err = p.communicate(timeout=WAIT_S)
        self.assertEqual((p.returncode, out), (1, ""), err)
        p = self.start("--data", self.data, "--port", "0")  # and the next start is none the worse
        self.ready(p)
        self.assertEqual(self.stop(p)[0], 0)

    def test_a_reader_of_stdout_that_went_away_does_not_stop_it(self):
        reading, writing = os.pipe()
        os.close(reading)
        p = subprocess.Popen([DOHLE, "start", "--data", self.data, "--port", "0", "--ports-file", self.ports],
                             stdout=writing, stderr=subprocess.PIPE, text=True)
        self.processes.append(p)
        os.close(writing)
        self.wait_for(lambda: os.path.exists(self.ports) or p.poll() is not None)
        with open(self.ports, encoding="utf-8") as f:
            port = int(f.read().split()[2])
        with socket.create_connection(("127.0.0.1", port), WAIT_S) as s:  # ApiVersions v0 is answered
            s.sendall(struct.pack(">ihhih", 10, 18, 0, 77, -1))
            self.assertEqual(s.recv(8)[4:], struct.pack(">i", 77))
        self.assertEqual(self.stop(p)[0], 0)


if __name__ == "__main__":
    main()
