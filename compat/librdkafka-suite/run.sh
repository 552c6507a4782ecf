#!/bin/bash
# librdkafka's own test suite, each test in a process of its own, beside what Apache Kafka 4.4 does on
# one node (kafka.txt: an id, its result, a note): compat/librdkafka-suite/run.sh DOHLE [--nodes 3] [ID...].
# With --nodes 3 all topics have three replicas, beside Apache Kafka's three nodes (kafka-three.txt). All ids
# take half an hour; they then rewrite a table in docs/COMPATIBILITY.md. ID:noautocreate is what a test
# does where topics are not made by asking for them, ID:PART one part of it, a function's name without
# "do_test_". DOHLE_SUITE_JOBS (2) run at a time, each DOHLE_SUITE_SECONDS (900) at most. Logs stay in
# ~/.cache/dohle-compat/librdkafka-suite/results; with TEST_DEBUG=protocol they show every request.
dohle=$1
shift
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../kafka.sh"
nodes=1
[ "${1:-}" != --nodes ] || { nodes=${2:-} && shift 2; }

package=@confluentinc/kafka-javascript@1.10.1 # carries librdkafka 2.15.1 with its tests
cache=$(cache_dir librdkafka-suite)
suite=$cache/package/deps/librdkafka
results=$cache/results
stop_seconds=180 # thousands of partitions are to be flushed
case $nodes in
1) expected=$here/kafka.txt table=librdkafka replicas=1 rack=RACK1 ;;
3)
    expected=$here/kafka-three.txt table=librdkafka-three replicas=3 rack='RACK{id}'
    broker_settings+=(replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector)
    . "$here/../three.sh"
    ;;
*)
    echo "--nodes is 1 or 3" >&2
    exit 2
    ;;
esac
broker_settings+=(num.partitions=4 "broker.rack=$rack")
for topic in default offsets.topic transaction.state.log share.coordinator.state.topic; do
    broker_settings+=("$topic.replication.factor=$replicas")
done

build() {
    fetch_kafka || return
    [ -x "$suite/tests/test-runner" ] && return
    cd "$cache" && npm pack --silent "$package" && tar xzf ./*.tgz && cd "$suite" &&
        ./configure && make -j"$(nproc)" libs && make -j"$(nproc)" -C tests build
}

# Some tests call Apache Kafka's tools, as scripts in a folder of its distribution.
kafka_script() { # NAME CLASS
    printf '#!/bin/sh\nexec java %s "%s" -cp "%s/*" org.apache.kafka.tools.%s "$@"\n' \
        "${kafka_jvm[*]}" "$(kafka_log4j ERROR)" "$kafka_jars" "$2" > "$work/kafka/bin/$1"
    chmod +x "$work/kafka/bin/$1"
}

kafka_scripts() {
    mkdir -p "$work/kafka/bin"
    kafka_script kafka-topics.sh TopicCommand
    kafka_script kafka-acls.sh AclCommand
}

# Skipped is a test of which no part ran; parts without a broker (-L) are no part of this.
verdict() { # STATUS LOG
    case $1 in
    0) if grep -aqE '^\|.* [0-9]{4}_.* PASSED ' "$2"; then echo "pass"; else echo "skipped"; fi ;;
    124 | 137) echo "timeout" ;;
    *) echo "fail" ;;
    esac
}

run_one() { # ID[:noautocreate], ID[:PART]
    local log=$results/$1.log begin=$SECONDS scenario=default
    case $1 in
    *:noautocreate) scenario=noautocreate ;;
    *:*) export SUBTESTS=do_test_${1#*:}: ;;
    esac
    printf 'bootstrap.servers=%s\ntest.topic.prefix=s%s\n' "$broker" "${1/:/-}" > "$work/$1.conf"
    cd "$suite/tests" || return
    RDKAFKA_TEST_CONF=$work/$1.conf TESTS=${1%:*} TEST_SCENARIO=$scenario TEST_KAFKA_VERSION=4.2.0.0 \
        BROKERS=$broker KAFKA_PATH=$work/kafka LD_LIBRARY_PATH=../src:../src-cpp \
        timeout -k 5 "${DOHLE_SUITE_SECONDS:-900}" ./test-runner -L -p1 > "$log" 2>&1
    echo "$1 $(verdict $? "$log") $((SECONDS - begin))" > "$results/$1.result"
}
export -f run_one verdict

run_at_once() { # JOBS ID...
    local jobs=$1
    shift
    printf '%s\n' "$@" | xargs -n 1 -P "$jobs" bash -c 'run_one "$1"' _ 2>/dev/null
}

# An id must do what it does on Apache Kafka; one that the file lets wait for something that is not
# served must not pass yet: if it does, it does not show what it is about, or the line is out of date.
as_expected() { # ID
    local kafka note ours
    read -r _ kafka note < <(grep "^$1 " "$expected")
    read -r _ ours _ < "$results/$1.result"
    case $broker_kind/$note in
    "dohle/waits for "*) [ "$ours" != pass ] ;;
    *) [ "$ours" = "$kafka" ] ;;
    esac
}

# The long ones have high numbers: those first. Tests measure time: what is not as it should be is run
# again, alone.
run_ids() {
    local id again=()
    [ $# -gt 0 ] || return 0
    export broker results suite work
    # shellcheck disable=SC2046
    run_at_once "${DOHLE_SUITE_JOBS:-2}" $(printf '%s\n' "$@" | tac)
    for id in "$@"; do
        as_expected "$id" || again+=("$id")
    done
    [ ${#again[@]} -eq 0 ] || run_at_once 1 "${again[@]}"
}

run_scenarios() {
    local id default=() noautocreate=()
    for id in "$@"; do
        case $id in
        *:noautocreate) noautocreate+=("$id") ;;
        *) default+=("$id") ;;
        esac
    done
    mkdir -p "$results" && rm -f "$results"/*
    run_ids "${default[@]}"
    [ ${#noautocreate[@]} -gt 0 ] || return 0
    check "the broker stops cleanly" stop_broker || return
    broker_settings+=(auto.create.topics.enable=false)
    start_broker && run_ids "${noautocreate[@]}"
}

judge() { # ID
    local kafka note ours seconds
    read -r _ kafka note < <(grep "^$1 " "$expected")
    [ -e "$results/$1.result" ] || echo "$1 not-run 0" > "$results/$1.result"
    read -r _ ours seconds < "$results/$1.result"
    if as_expected "$1"; then
        passed=$((passed + 1))
        echo "ok    $1: $ours in $seconds s, Kafka: $kafka${note:+ ($note)}"
    else
        failed=$((failed + 1))
        echo "FAIL  $1: $ours in $seconds s, Kafka: $kafka${note:+ ($note)}"
        grep -aE '^.*(### Test|Test assertion|expected)' "$results/$1.log" | head -3 | sed 's/^/      | /'
    fi
    [ "$kafka" != pass ] || on_kafka=$((on_kafka + 1))
    [ "$kafka/$ours" != pass/pass ] || on_both=$((on_both + 1))
    rows+="| $1 | $kafka | $ours | $note |"$'\n'
}

print_table() {
    printf '%s\n' "Of $on_kafka tests and parts that pass on Apache Kafka $on_both pass here." ''
    printf '%s\n' '| id | Apache Kafka 4.4 | Dohle | |' '|---|---|---|---|'
    printf '%s' "$rows"
}

check "build" build || finish
kafka_scripts
start_broker || exit 1
ids=("$@") rows= on_kafka=0 on_both=0
[ $# -gt 0 ] || mapfile -t ids < <(cut -d ' ' -f 1 "$expected")
run_scenarios "${ids[@]}"
for id in "${ids[@]}"; do
    judge "$id"
done
[ $# -gt 0 ] || [ "$broker_kind" != dohle ] || print_table | write_table "$table"
check "the broker stops cleanly" stop_broker
finish
