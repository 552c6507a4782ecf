# What the clients' scripts share; sourced by them after `dohle` is set to the binary. Every process
# is ended by its own id, every wait is bounded. At the end: finish, which prints "N passed, N failed".
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/dohle-compat.XXXXXX")
dohle_pid= client_pid= port=0 passed=0 failed=0

end_all() {
    # The client is a function in the background: what it runs is its child, and ends by TERM.
    [ -z "$client_pid" ] || { pkill -TERM -P "$client_pid"; kill -9 "$client_pid" 2>/dev/null; }
    [ -z "$dohle_pid" ] || kill -9 "$dohle_pid" 2>/dev/null
    wait 2>/dev/null
    rm -rf "$work"
}
trap end_all EXIT
trap 'exit 130' INT TERM

# start_dohle [--set k=v]...: on the port of the first start, with the data of the last.
start_dohle() {
    rm -f "$work/ports"
    "$dohle" start --data "$work/data" --port "$port" --ports-file "$work/ports" "$@" \
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

# TERM, and the exit code must be 0 within 20 s.
stop_dohle() {
    kill -TERM "$dohle_pid"
    for _ in $(seq 400); do
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

# Kills the broker once the topic's log has grown and starts it again; the client $client_pid goes on
# over it and ends well.
kill_under_client() { # TOPIC
    local size=0
    for _ in $(seq 400); do
        size=$(cat "$work/data/$1-0"/*.log 2>/dev/null | wc -c)
        [ "$size" -gt 200000 ] && break
        sleep 0.02
    done
    kill_dohle
    echo "killed with $size bytes in the log"
    start_dohle || return 1
    wait "$client_pid" || return 1
    client_pid=
    [ "$size" -gt 0 ]
}

# The most the broker has used; the limit is dohle.memory.max.bytes and 16 MB.
check_memory() {
    local kb
    kb=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$dohle_pid/status")
    check "memory: at most $kb kB" [ "$kb" -lt $(((256 + 16) * 1024)) ]
}

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

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

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

sum_of() {
    sha256sum | cut -d ' ' -f 1
}

codecs="none gzip snappy lz4 zstd"
