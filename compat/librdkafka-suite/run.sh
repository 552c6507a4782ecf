#!/bin/bash
# librdkafka's own test suite, each test in a process of its own, beside what Apache Kafka 4.4 does on
# one node (kafka.txt): compat/librdkafka-suite/run.sh DOHLE [ID...]. All ids take half an hour; they
# then rewrite the table in docs/COMPATIBILITY.md. DOHLE_SUITE_JOBS (2) run at a time, each
# DOHLE_SUITE_SECONDS (300) at most. Logs stay in ~/.cache/dohle-compat/librdkafka-suite/results.
dohle=$1
shift
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"

package=@confluentinc/kafka-javascript@1.10.1 # carries librdkafka 2.15.1 with its tests
cache=$(cache_dir librdkafka-suite)
suite=$cache/package/deps/librdkafka
results=$cache/results
table=$here/../../docs/COMPATIBILITY.md
broker_settings+=(default.replication.factor=1 offsets.topic.replication.factor=1 num.partitions=4 broker.rack=RACK1)

build() {
    [ -x "$suite/tests/test-runner" ] && return
    cd "$cache" && npm pack --silent "$package" && tar xzf ./*.tgz && cd "$suite" &&
        ./configure && make -j"$(nproc)" libs && make -j"$(nproc)" -C tests build
}

# The suite calls a test that skips parts of itself passed.
verdict() { # STATUS LOG
    case $1 in
    0) if grep -qE 'SKIPP(ED|ING)' "$2"; then echo "skipped"; else echo "pass"; fi ;;
    124 | 137) echo "timeout" ;;
    *) echo "fail" ;;
    esac
}

run_one() { # ID
    local log=$results/$1.log begin=$SECONDS
    printf 'bootstrap.servers=%s\ntest.topic.prefix=s%s\n' "$broker" "$1" > "$work/$1.conf"
    cd "$suite/tests" || return
    RDKAFKA_TEST_CONF=$work/$1.conf TESTS=$1 TEST_KAFKA_VERSION=4.2.0.0 BROKERS=$broker \
        LD_LIBRARY_PATH=../src:../src-cpp timeout -k 5 "${DOHLE_SUITE_SECONDS:-300}" \
        ./test-runner -L -p1 > "$log" 2>&1
    echo "$1 $(verdict $? "$log") $((SECONDS - begin))" > "$results/$1.result"
}
export -f run_one verdict

run_ids() {
    mkdir -p "$results" && rm -f "$results"/*
    export broker results suite work
    printf '%s\n' "$@" | xargs -n 1 -P "${DOHLE_SUITE_JOBS:-2}" bash -c 'run_one "$1"' _
}

# An id must do what it does on Apache Kafka, unless kafka.txt says what it waits for.
judge() { # ID
    local id kafka waits ours seconds
    read -r id kafka waits < <(grep "^$1 " "$here/kafka.txt")
    read -r _ ours seconds < "$results/$1.result"
    if [ "$ours" = "$kafka" ] || [ -n "$waits" ]; then
        passed=$((passed + 1))
        echo "ok    $id: $ours in $seconds s, Kafka: $kafka${waits:+, waits for $waits}"
    else
        failed=$((failed + 1))
        echo "FAIL  $id: $ours in $seconds s, Kafka: $kafka"
        grep -aE '^.*(### Test|Test assertion|expected)' "$results/$id.log" | head -3 | sed 's/^/      | /'
    fi
    rows+="| $id | $kafka | $ours | ${waits:+waits for $waits} |"$'\n'
}

write_table() {
    local text=$work/compatibility
    {
        sed '/^<!-- librdkafka -->$/q' "$table"
        printf '%s\n' '| id | Apache Kafka 4.4 | Dohle | |' '|---|---|---|---|'
        printf '%s' "$rows"
        sed -n '/^<!-- end of librdkafka -->$/,$p' "$table"
    } > "$text" && cp "$text" "$table"
}

check "build" build || finish
start_broker || exit 1
ids=("$@") rows=
[ $# -gt 0 ] || mapfile -t ids < <(cut -d ' ' -f 1 "$here/kafka.txt")
run_ids "${ids[@]}"
for id in "${ids[@]}"; do
    judge "$id"
done
[ $# -gt 0 ] || write_table
check "the broker stops cleanly" stop_broker
finish
