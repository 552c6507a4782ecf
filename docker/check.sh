#!/bin/bash
# docker/check.sh: the compose files without Docker. Each service is a network namespace on one bridge and a chroot into
# the image's files, under the image's user, with the service's own command and health check. Needs root, ip, and
# python3-yaml. Ends with "N passed, N failed".
set -u
cd "$(dirname "$(realpath "$0")")/.."
docker/build.sh --root || exit 1
image=$PWD/build/docker/root
work=$(mktemp -d "${TMPDIR:-/tmp}/dohle-docker.XXXXXX")
bridge=dohle$$
pids=() spaces=() wires=0 passed=0 failed=0

end_all() {
    local x
    for x in "${pids[@]}"; do kill -9 "$x" 2>/dev/null; done
    wait 2>/dev/null
    for x in "${spaces[@]}"; do ip netns del "$x"; done
    ip link del $bridge 2>/dev/null
    rm -rf "$work"
}
trap end_all EXIT
trap 'exit 130' INT TERM

check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" > "$work/out" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $name"
    else
        failed=$((failed + 1))
        echo "FAIL  $name"
        tail -5 "$work/out" | sed 's/^/      | /'
        return 1
    fi
}

wait_for() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.2
    done
}

# service FILE NAME WHAT: the words of its command or health check, the image's where it has none.
service() {
    python3 - "$1" "$2" "$3" <<'P'
import json, re, sys, yaml
path, name, what = sys.argv[1:]
with open(path, encoding="utf-8") as f:
    s = yaml.safe_load(f)["services"][name]
with open("docker/Dockerfile", encoding="utf-8") as f:
    text = f.read().replace("\\\n", "")
words = re.search(r"^CMD (.*)$" if what == "command" else r"^HEALTHCHECK .*?CMD (.*)$", text, re.M)
words = json.loads(words[1])
if what == "command":
    words = ["/usr/bin/dohle"] + s.get("command", words)
elif "healthcheck" in s:
    words = s["healthcheck"]["test"][1:]
print("\n".join(words))
P
}

inside() { # SERVICE COMMAND...
    local name=$1
    shift
    ip netns exec "$bridge-$name" chroot --userspec=1000:1000 "$work/$name" "$@"
}

container() { # SERVICE N: its namespace and files; address 10.213.0.N
    local name=$1 space=$bridge-$1 wire
    wires=$((wires + 1)) wire=$bridge-$wires # a namespace's wires go some time after it
    ip netns add "$space" && spaces+=("$space") &&
        ip link add "$wire" type veth peer name eth0 netns "$space" &&
        ip link set "$wire" master $bridge up &&
        ip -n "$space" addr add "10.213.0.$2/24" dev eth0 &&
        ip -n "$space" link set eth0 up && ip -n "$space" link set lo up &&
        cp -r "$image" "$work/$name" && chown 1000:1000 "$work/$name/var/lib/dohle" &&
        cp docker/three.properties "$work/$name/etc/dohle.properties" &&
        printf '127.0.0.1 localhost\n10.213.0.1 node1\n10.213.0.2 node2\n10.213.0.3 node3\n' > "$work/$name/etc/hosts"
}

start() { # FILE SERVICE
    local words
    mapfile -t words < <(service "$1" "$2" command)
    # Not inside(): the process that is started must be the program itself.
    ip netns exec "$bridge-$2" chroot --userspec=1000:1000 "$work/$2" "${words[@]}" > "$work/$2.log" 2>&1 &
    pids+=($!)
}

healthy() { # FILE SERVICE
    local words
    mapfile -t words < <(service "$1" "$2" health)
    inside "$2" "${words[@]}"
}

round_trip() { # SERVICE BROKER
    echo hello | inside "$1" /usr/bin/dohle produce -b "$2" greetings &&
        [ "$(inside "$1" /usr/bin/dohle consume -b "$2" greetings -e)" = hello ]
}

stops() {
    local p code=0
    for p in "${pids[@]}"; do kill -TERM "$p"; done
    for p in "${pids[@]}"; do wait "$p" || code=1; done
    pids=()
    return $code
}

file() { # FILE BROKER SERVICE...
    local path=$1 broker=$2 name n=0
    shift 2
    for name in "$@"; do
        n=$((n + 1))
        check "$path: $name" container "$name" $n || return
        start "$path" "$name"
    done
    for name in "$@"; do
        check "$path: $name is healthy" wait_for 60 healthy "$path" "$name" || tail -3 "$work/$name.log"
    done
    check "$path: a record goes in and comes out" round_trip "$1" "$broker"
    check "$path: all stop cleanly" stops
    for name in "$@"; do
        ip netns del "$bridge-$name"
    done
    spaces=()
}

ip link add $bridge type bridge && ip link set $bridge up || exit 1
file docker/compose.yaml localhost:9092 dohle
file docker/three.yaml node1:19092 node1 node2 node3
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
