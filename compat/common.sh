# What the clients' scripts share; sourced by them after `dohle` is set to the binary. Every process
# is ended by its own id, every wait is bounded. At the end: finish, which prints "N passed, N failed".
set -u
compat=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
work=$(mktemp -d "${TMPDIR:-/tmp}/dohle-compat.XXXXXX")
data=$work/data
dohle_pid= kafka_pid= client_pid= port=0 passed=0 failed=0 skipped=0
members=() # process ids, by no order

end_all() {
    local p
    # The client is a function in the background: what it runs is its child, and ends by TERM.
    [ -z "$client_pid" ] || { pkill -TERM -P "$client_pid"; kill -9 "$client_pid" 2>/dev/null; }
    for p in "${members[@]}" $dohle_pid $kafka_pid; do
        kill -9 "$p" 2>/dev/null
    done
    wait 2>/dev/null
    rm -rf "$work"
}
trap end_all EXIT
trap 'exit 130' INT TERM

# Where what a client downloads is kept from run to run.
cache_dir() { # NAME
    local dir=${XDG_CACHE_HOME:-$HOME/.cache}/dohle-compat/$1
    mkdir -p "$dir" && echo "$dir"
}

json_words() { # WORD...: as a JSON array
    python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "$@"
}

# ------------------------------------------------------------------ the broker

free_port() {
    python3 -c 'import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])'
}

# start_dohle [--set k=v]...: on the port of the first start, with the data of the last.
start_dohle() {
    rm -f "$work/ports"
    "$dohle" start --data "$data" --port "$port" --ports-file "$work/ports" "$@" \
        > "$work/stdout" 2>> "$work/stderr" &
    dohle_pid=$!
    for _ in $(seq 600); do
        if [ -s "$work/ports" ]; then
            read -r _ host port < "$work/ports"
            broker=$host:$port
            return 0
        fi
        kill -0 "$dohle_pid" 2>/dev/null || break
        sleep 0.05
    done
    echo "the broker does not start:"
    tail -5 "$work/stderr"
    return 1
}

# TERM, and the exit code must be 0 within 20 s, or $stop_seconds.
stop_dohle() {
    kill -TERM "$dohle_pid"
    for _ in $(seq $((20 * ${stop_seconds:-20}))); do
        kill -0 "$dohle_pid" 2>/dev/null || break
        sleep 0.05
    done
    kill -9 "$dohle_pid" 2>/dev/null
    wait "$dohle_pid"
    local code=$?
    dohle_pid=
    return $code
}

kill_dohle() {
    kill -9 "$dohle_pid"
    wait "$dohle_pid" 2>/dev/null
    dohle_pid=
}

# What is under test: Dohle, or, to try a client, Apache Kafka (DOHLE_COMPAT_BROKER=kafka) or a broker
# that runs already (DOHLE_COMPAT_BROKER=HOST:PORT). Settings, "key=value", are for the first two.
broker_kind=${DOHLE_COMPAT_BROKER:-dohle}
broker_settings=()
case $broker_kind in
dohle | *:*) ;;
kafka) . "$compat/kafka.sh" ;;
*)
    echo "DOHLE_COMPAT_BROKER: $broker_kind" >&2
    exit 2
    ;;
esac

can_restart() {
    case $broker_kind in *:*) return 1 ;; esac
}

start_broker() {
    local setting sets=()
    case $broker_kind in
    dohle)
        for setting in "${broker_settings[@]}"; do
            sets+=(--set "$setting")
        done
        start_dohle "${sets[@]}"
        ;;
    kafka) start_kafka "$data" "${broker_settings[@]}" ;;
    *) broker=$broker_kind ;;
    esac
}

stop_broker() {
    ! can_restart || "stop_$broker_kind"
}

kill_broker() {
    ! can_restart || "kill_$broker_kind"
}

# served NAME API...: whether the broker advertises these; if not, NAME is skipped.
served() {
    local name=$1 missing code
    shift
    missing=$("$compat/served.py" "$broker" "$@")
    code=$?
    [ $code -ne 2 ] || check "$name" false
    [ $code -ne 1 ] || skip "$name" "the broker does not serve $missing"
    return $code
}

# Kills the broker once the topic's log has grown and starts it again; the client $client_pid goes on
# over it and ends well.
kill_under_client() { # TOPIC
    local size=0
    for _ in $(seq 400); do
        size=$(cat "$data/$1-0"/*.log 2>/dev/null | wc -c)
        [ "$size" -gt 200000 ] && break
        sleep 0.02
    done
    kill_broker
    echo "killed with $size bytes in the log"
    start_broker || return 1
    wait "$client_pid" || return 1
    client_pid=
    [ "$size" -gt 0 ]
}

# The most the broker has used; the limit is dohle.memory.max.bytes and 16 MB.
check_memory() {
    local kb
    [ "$broker_kind" = dohle ] || return 0
    kb=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$dohle_pid/status")
    check "memory: at most $kb kB" [ "$kb" -lt $(((256 + 16) * 1024)) ]
}

# ------------------------------------------------------------------ results

# check NAME COMMAND...: one result, which is the status too.
check() {
    local name=$1 begin=$SECONDS
    shift
    if "$@" > "$work/check" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $name ($((SECONDS - begin)) s)"
    else
        failed=$((failed + 1))
        echo "FAIL  $name"
        sed 's/^/      | /' "$work/check" | tail -8
        [ ! -e "$work/stderr" ] || tail -4 "$work/stderr" | sed 's/^/      broker: /'
        return 1
    fi
}

skip() { # NAME WHY
    skipped=$((skipped + 1))
    echo "skip  $1: $2"
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

finish() {
    [ $skipped -eq 0 ] || echo "$skipped skipped"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

# ------------------------------------------------------------------ input

decompress() {
    case $1 in
    *.lz4) lz4 -dc "$1" ;;
    *.gz) gzip -dc "$1" ;;
    *.xz) xz -dc "$1" ;;
    *.zst) zstd -dc "$1" ;;
    *) cat "$1" ;;
    esac
}

package_lists() {
    local f
    for f in /var/lib/apt/lists/*Packages*; do
        [ ! -f "$f" ] || decompress "$f"
    done
    # What every Debian machine has when the lists were deleted, repeated to the size of one.
    if ! ls /var/lib/apt/lists/*Packages* > /dev/null 2>&1; then
        for _ in $(seq 40); do
            cat /var/lib/dpkg/status /var/lib/dpkg/info/*.list
        done
    fi
}

# The lines of this machine's package lists without empty ones, as many bytes at most.
make_input() { # FILE BYTES
    package_lists 2>/dev/null | grep -av '^$' | head -c "$2" > "$1"
    [ -z "$(tail -c 1 "$1")" ] || echo >> "$1"
    echo "input: $(wc -c < "$1") bytes, $(wc -l < "$1") lines"
    [ -s "$1" ]
}

# Puts stdin between the marks of that name in docs/COMPATIBILITY.md.
write_table() { # NAME
    local page=$compat/../docs/COMPATIBILITY.md text=$work/compatibility
    {
        sed "/^<!-- $1 -->\$/q" "$page"
        cat
        sed -n "/^<!-- end of $1 -->\$/,\$p" "$page"
    } > "$text" && cp "$text" "$page"
}

sum_of() {
    sha256sum | cut -d ' ' -f 1
}

codecs="none gzip snappy lz4 zstd"
