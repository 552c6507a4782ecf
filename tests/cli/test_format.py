#!/usr/bin/env python3
"""dohle format: directories equal to those of Kafka's storage tool, and what it refuses.

  test_format.py PROGRAM
"""
import base64
import os
import re
import struct

from case import Case, main

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "format")
CLUSTER = "4L6g3nShT-eMCtK--X86sw"
SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
CONTROLLER = ("--set", "node.id=1", "--set", "controller.listener.names=CONTROLLER", "--set",
              "listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093")
STATIC = CONTROLLER + ("--set", "controller.quorum.voters=1@127.0.0.1:19093,2@127.0.0.1:19193,"
                       "3@127.0.0.1:19293")
DYNAMIC = CONTROLLER + ("--set", "controller.quorum.bootstrap.servers=127.0.0.1:19093")
BROKER = ("--set", "node.id=4", "--set", "process.roles=broker", "--set",
          "controller.listener.names=CONTROLLER", "--set", "listeners=PLAINTEXT://127.0.0.1:19092",
          "--set", "controller.quorum.bootstrap.servers=127.0.0.1:19093")
TWO = "1@127.0.0.1:19093:JEXY6aqzQY-32P5TStzaFg,2@127.0.0.1:19193:MvDxzVmcRsaTz33bUuRU6A"


def properties(directory):
    with open(os.path.join(directory, "meta.properties"), encoding="utf-8") as f:
        lines = [line.strip() for line in f]
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def batches(directory):
    """The snapshot's, without their CRCs and times, and our directory's id as one of zeros."""
    own = base64.urlsafe_b64decode(properties(directory)["directory.id"] + "==")
    with open(os.path.join(directory, SNAPSHOT), "rb") as f:
        data = f.read()
    at, out = 0, []
    while at < len(data):
        size = 12 + struct.unpack_from(">i", data, at + 8)[0]
        batch = bytearray(data[at:at + size])
        batch[17:21] = bytes(4)
        batch = bytes(batch).replace(own, bytes(16))
        out.append(re.sub(rb"\0\0\x01[\x80-\xff].{4}", bytes(8), batch, flags=re.S))
        at += size
    return out


class Format(Case):
    def format(self, *args, cluster=CLUSTER, data="data"):
        chosen = () if cluster is None else ("-t", cluster)
        return self.run_dohle("format", *chosen, "--data", os.path.join(self.dir, data), *args)

    def refused(self, *args, says=(), status=78, **more):
        r = self.format(*args, **more)
        self.assertEqual((r.returncode, r.stdout), (status, ""), r.stderr)
        for text in says:
            self.assertIn(text, r.stderr)
        directory = os.path.join(self.dir, more.get("data", "data"))
        self.assertFalse(os.path.exists(os.path.join(directory, "meta.properties")))

    def equal(self, golden, *args):
        r = self.format(*args, data=golden)
        self.assertEqual(r.returncode, 0, r.stderr)
        own, kafka = os.path.join(self.dir, golden), os.path.join(GOLDEN, golden)
        self.assertEqual({**properties(own), "directory.id": ""},
                         {**properties(kafka), "directory.id": ""})
        self.assertEqual(os.path.exists(os.path.join(own, SNAPSHOT)),
                         os.path.exists(os.path.join(kafka, SNAPSHOT)))
        if os.path.exists(os.path.join(kafka, SNAPSHOT)):
            self.assertEqual(batches(own), batches(kafka))

    def test_several_directories(self):
        """Each has an id of its own; the metadata log is in one."""
        names = ["a", "b", "c"]
        paths = [os.path.join(self.dir, name) for name in names]
        dirs = ",".join(paths)
        r = self.format(*STATIC, "--set", "metadata.log.dir=" + paths[1], data=dirs)
        self.assertEqual(r.returncode, 0, r.stderr)
        found = [properties(path) for path in paths]
        self.assertEqual(len({p["directory.id"] for p in found}), 3)
        self.assertEqual({(p["cluster.id"], p["node.id"]) for p in found}, {(CLUSTER, "1")})
        self.assertEqual([os.path.exists(os.path.join(path, SNAPSHOT)) for path in paths],
                         [False, True, False])
        for name in os.listdir(paths[2]):
            os.unlink(os.path.join(paths[2], name))
        r = self.format(*STATIC, data=dirs)
        self.assertEqual((r.returncode, r.stdout), (1, ""))
        self.assertFalse(os.path.exists(os.path.join(paths[2], "meta.properties")))
        r = self.format(*STATIC, "-g", data=dirs, cluster="another-cluster-of-22-c")
        self.assertEqual(r.returncode, 1)
        self.assertFalse(os.path.exists(os.path.join(paths[2], "meta.properties")))
        r = self.format(*STATIC, "-g", data=dirs)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(properties(paths[0]), found[0])
        again = properties(paths[2])
        self.assertNotEqual(again.pop("directory.id"), found[2].pop("directory.id"))
        self.assertEqual(again, found[2])

    def test_directories_are_kafkas(self):
        self.equal("static", *STATIC)
        self.equal("standalone", *DYNAMIC, "--standalone")
        self.equal("initial", *DYNAMIC, "--initial-controllers", TWO)
        self.assertEqual(properties(os.path.join(self.dir, "initial"))["directory.id"],
                         "JEXY6aqzQY-32P5TStzaFg")
        self.equal("noinitial", *DYNAMIC, "-N")
        self.equal("broker", *BROKER)

    def test_a_formatted_directory_stays(self):
        self.assertEqual(self.format(*STATIC).returncode, 0)
        before = properties(os.path.join(self.dir, "data"))
        r = self.format(*STATIC)
        self.assertEqual((r.returncode, r.stdout), (1, ""))
        self.assertIn("is formatted already", r.stderr)
        self.assertEqual(self.format(*STATIC, "-g").returncode, 0)
        self.assertEqual(properties(os.path.join(self.dir, "data")), before)
        with open(os.path.join(self.dir, "foreign"), "w", encoding="utf-8"):
            pass
        self.refused(*STATIC, data=".", status=1, says=["is not empty"])

    def test_what_does_not_fit_together(self):
        self.refused(*STATIC, cluster=None, status=2, says=["--cluster-id"])
        self.refused(*DYNAMIC, says=["--standalone", "--no-initial-controllers"])
        self.refused(*DYNAMIC, "-s", "-N", status=2, says=["exclude each other"])
        self.refused(*STATIC, "--data", "", status=2, says=["--data needs DIR"])
        self.refused(*STATIC, "-c", "a", "-c", "b", status=2, says=["--config is given twice"])
        self.refused(*STATIC, "--standalone", says=["controller.quorum.bootstrap.servers"])
        self.refused(*BROKER, "--standalone", says=["controller role"])
        self.refused(*STATIC, "--set", "cluster.id=other", says=["cluster.id"])
        for wrong in "1@127.0.0.1:19093", "x", TWO + ",3@h:1:AAAAAAAAAAAAAAAAAAAAAA", ",":
            self.refused(*DYNAMIC, "-I", wrong, says=["--initial-controllers"])

    def test_features(self):
        self.refused(*STATIC, "-f", "group.version", status=2, says=["NAME=LEVEL"])
        self.refused(*STATIC, "-f", "no.such=1", says=["there is no such feature"])
        self.refused(*STATIC, "-f", "group.version=9", says=["there is no such level"])
        self.refused(*STATIC, "-f", "metadata.version=20", says=["only 33"])
        self.refused(*STATIC, "-f", "kraft.version=1", says=["kraft.version"])
        self.refused(*DYNAMIC, "-s", "-f", "kraft.version=0", says=["kraft.version"])
        self.refused(*STATIC, "-r", "9.9", says=["only 4.4"])
        self.refused(*STATIC, "-S", "SCRAM-SHA-256=[name=a,password=x]", says=["not served yet"])
        self.assertEqual(self.format(*STATIC, "-r", "4.4", "-f", "group.version=0",
                                     "-f", "kraft.version=0").returncode, 0)
        with open(os.path.join(self.dir, "data", SNAPSHOT), "rb") as f:
            self.assertNotIn(b"group.version", f.read())

    def test_random_uuid(self):
        one, other = self.run_dohle("random-uuid"), self.run_dohle("random-uuid")
        self.assertRegex(one.stdout, r"^[A-Za-z0-9_][A-Za-z0-9_-]{21}\n$")
        self.assertNotEqual(one.stdout, other.stdout)
        self.assertEqual(self.run_dohle("random-uuid", "x").returncode, 2)


if __name__ == "__main__":
    main()
