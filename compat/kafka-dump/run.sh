#!/bin/bash
# Every file that Dohle wrote, before Apache Kafka's own eyes: compat/kafka-dump/run.sh DOHLE [quick].
# DumpLogSegments reads all logs, indexes and snapshots, data and metadata, after a clean stop and after
# kill -9; then Apache Kafka starts on a copy, once cleanly, once by its own recovery, serves every record
# and writes some; then Dohle starts on what that left.
dohle=$1
quick=${2:-}
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../kafka.sh"
. "$here/dump.sh"
command -v kcat > /dev/null || { echo "kcat is not installed: ./dev setup" >&2; exit 1; }

bytes=4000000 limit=300
[ -z "$quick" ] || bytes=2000000
# Small segments, many index entries, a metadata snapshot every now and then.
broker_settings=(
    num.partitions=3
    log.segment.bytes=1048576
    log.index.interval.bytes=512
    metadata.log.max.record.bytes.between.snapshots=10000
)
program=$work/roundtrip
client=(java "${kafka_jvm[@]}" "$(kafka_log4j ERROR)" -cp "$work/classes:$kafka_jars/*" Client)

build() {
    make -s -C "$compat/librdkafka" OUT="$program" && fetch_kafka &&
        javac -cp "$kafka_jars/*" -d "$work/classes" "$compat/java/Client.java"
}

# ------------------------------------------------------------------ what is produced

# sent TOPIC N: so many records more are there, for the comparison with what the dump counts.
declare -A records_of
transacted= # committed records among them
sent() {
    records_of[$1]=$((${records_of[$1]:-0} + $2))
}

topics_tool() {
    kafka_tool TopicCommand --bootstrap-server "$broker" "$@"
}

keyed() { # TOPIC CODEC [kcat options]: lines under their numbers, as Client.java writes them
    local topic=$1 codec=$2
    shift 2
    kcat -P -b "$broker" -t "$topic" -z "$codec" -K '\t' -X acks=all -H source=apt "$@" < "$work/keyed" &&
        sent "$topic" "$(wc -l < "$work/keyed")"
}

idempotent() { # TOPIC CODEC FILE [CHUNK]
    local topic=$1 said
    shift
    said=$(timeout "$limit" "$program" produce "$broker" "$topic" "$@") || return
    # shellcheck disable=SC2086
    set -- $said
    sent "$topic" "$2"
}

# A batch per record, a producer id per call: what fills indexes and producer snapshots.
many_producers() {
    local i
    for i in $(seq 20); do
        head -n $((i * 10)) "$work/input" | tail -n 10 |
            kcat -P -b "$broker" -t many-producers -X acks=all -X enable.idempotence=true -X linger.ms=0 \
                -X queue.buffering.max.messages=1 || return
    done
    sent many-producers 200
}

killed_while_producing() {
    timeout "$limit" "$program" produce "$broker" torn lz4 "$work/input" &
    client_pid=$!
    kill_under_client torn && sent torn "$(wc -l < "$work/input")"
}

produce_all() {
    local codec
    for codec in $codecs; do
        check "produce: $codec" keyed "keyed-$codec" "$codec"
        check "produce: $codec, idempotent" idempotent "line-$codec" "$codec" "$work/input"
    done
    check "produce: large messages" idempotent chunk none "$work/input" 300000
    check "create: LogAppendTime" topics_tool --create --topic stamped --config message.timestamp.type=LogAppendTime
    check "produce: LogAppendTime" keyed stamped zstd
    check "produce: many producers" many_producers
}

# Committed offsets in __consumer_offsets.
commit() {
    kafka_tool consumer.ConsoleConsumer --bootstrap-server "$broker" --topic line-none --group "dump-$1" \
        --from-beginning --max-messages 5000 --timeout-ms 60000 > "$work/out" &&
        head -n 5000 "$work/input" | cmp - "$work/out"
}

# Markers and aborted transactions in a topic, __transaction_state.
transact() {
    local said
    said=$(timeout "$limit" "${client[@]}" transact "$broker" transacted "$work/input") || return
    transacted=${said#committed }
    sent transacted "$(wc -l < "$work/input")"
}

produce_internal() {
    local i
    if served "groups" FindCoordinator JoinGroup OffsetCommit OffsetFetch; then
        for i in 1 2 3; do
            check "commit offsets: group $i" commit "$i"
        done
    fi
    served "transactions" FindCoordinator AddPartitionsToTxn EndTxn || return
    check "transactions" transact
}

# ------------------------------------------------------------------ DumpLogSegments

# What DumpLogSegments counted is what was produced, and nothing else.
counts_are_right() {
    local topic
    for topic in "${!records_of[@]}"; do
        echo "$topic ${records_of[$topic]}"
    done | LC_ALL=C sort | diff - "$work/counted"
}

# There is something to look at.
is_rich() {
    local entries
    entries=$(grep -cE '^(offset|timestamp): ' "$work/dump")
    echo "$(grep -c '^producerId: ' "$work/dump") producers, $entries index entries"
    [ "$(find "$data" -name '*.log' -path '*/line-none-0/*' | wc -l)" -ge 3 ] &&
        [ "$(find "$data" -name '*.checkpoint' | wc -l)" -ge 2 ] &&
        [ "$entries" -ge 100 ] && grep -q '^producerId: ' "$work/dump" &&
        grep -q REMOVE_TOPIC_RECORD "$work/dump"
}

# The check can fail: one byte of a batch is another.
finds_damage() {
    local data=$work/damaged
    mkdir -p "$data/keyed-none-0"
    cp "$work/data/keyed-none-0/00000000000000000000.log" "$data/keyed-none-0/"
    printf 'X' | dd of="$data/keyed-none-0/00000000000000000000.log" bs=1 seek=200 conv=notrunc status=none
    ! dump_is_sound
}

check_dump() { # WHEN
    check "$1: DumpLogSegments finds nothing" dump_is_sound &&
        check "$1: as many records as were produced" counts_are_right
}

# ------------------------------------------------------------------ Apache Kafka on the same files

repeated() { # N
    local i
    for i in $(seq "$1"); do
        cat "$work/input"
    done
}

is_keyed() { # TOPIC FILE
    timeout "$limit" "${client[@]}" consume "$broker" "$1" "$work/out" && "$compat/records.py" 0 "$2" "$work/out"
}

is_lines() { # TOPIC
    kafka_tool consumer.ConsoleConsumer --bootstrap-server "$broker" --topic "$1" --partition 0 --offset earliest \
        --max-messages "${records_of[$1]}" --timeout-ms 30000 > "$work/out" &&
        repeated $((records_of[$1] / $(wc -l < "$work/input"))) | cmp - "$work/out"
}

is_chunks() { # TOPIC
    timeout "$limit" "$program" consume "$broker" "$1" "$work/out" 1 && cmp "$work/out" "$work/input"
}

# The first thousand lines of each two.
is_committed() {
    kafka_tool consumer.ConsoleConsumer --bootstrap-server "$broker" --topic transacted --partition 0 --offset earliest \
        --isolation-level read_committed --max-messages "$transacted" --timeout-ms 30000 > "$work/out" &&
        awk '(NR - 1) % 2000 < 1000' "$work/input" | cmp - "$work/out"
}

reads_all() { # WHO [FILE]: what the keyed topics hold
    local codec
    for codec in $codecs; do
        check "$1 reads: $codec" is_keyed "keyed-$codec" "${2:-$work/input}"
        check "$1 reads: $codec, idempotent" is_lines "line-$codec"
    done
    check "$1 reads: large messages" is_chunks chunk
    check "$1 reads: LogAppendTime" is_keyed stamped "$work/input"
    check "$1 reads: what kill -9 interrupted" is_lines torn
    [ -z "$transacted" ] || check "$1 reads: committed transactions" is_committed
}

# What Apache Kafka says of its own directories too: that it registers before it is active, that the
# machine is busy.
usual='Performing controller activation|NetworkClient that has already been closed|apiKey=CONTROLLER_REGISTRATION|EventPerformanceMonitor'

no_complaint() {
    awk -v usual="$usual" '/^[-0-9]+ [0-9:,]+ / { bad = / (WARN|ERROR|FATAL) / && $0 !~ usual }
        bad { print substr($0, 1, 300); n++ }
        END { exit n > 0 }' "$work/kafka.log"
}

produce_more() {
    local codec
    for codec in $codecs; do
        timeout "$limit" "${client[@]}" produce "$broker" "keyed-$codec" "$codec" "$work/input" \
            "$(wc -l < "$work/input")" idempotent || return
    done
}

kafka_on_a_copy() { # WHEN
    data=$work/copy
    rm -rf "$data"
    cp -r "$work/data" "$data"
    check "$1: Apache Kafka starts" start_kafka "$data" "${broker_settings[@]}" || return
    reads_all "Apache Kafka"
    check "$1: Apache Kafka writes" produce_more
    check "$1: Apache Kafka stops" stop_kafka
    check "$1: Apache Kafka complains of nothing" no_complaint
    cat "$work/input" "$work/input" > "$work/twice"
    check "$1: start on what Apache Kafka left" start_dohle
    reads_all "Dohle" "$work/twice"
    check "$1: stop" stop_dohle
    data=$work/data
}

# ------------------------------------------------------------------ all of it

check "build" build || finish
make_input "$work/input" "$bytes" || exit 1
awk '{ print NR - 1 "\t" $0 }' "$work/input" > "$work/keyed"
check "start" start_broker || finish
produce_all
produce_internal
check "create a topic to delete" topics_tool --create --topic gone --partitions 3
check "produce to it" keyed gone none
check "delete it" topics_tool --delete --topic gone
unset 'records_of[gone]'
check "create 300 partitions" topics_tool --create --topic many --partitions 300
check "stop" stop_broker
check_dump "after a clean stop"

check "start again" start_broker
check "killed while producing" killed_while_producing
check "append" idempotent torn none "$work/input"
check "stop again" stop_broker
check_dump "after a recovery"
check "there is something to look at" is_rich
check "damage is found" finds_damage
kafka_on_a_copy "after a clean stop"

check "start once more" start_broker
check "append after that" idempotent torn zstd "$work/input"
kill_broker
kafka_on_a_copy "after kill -9"
finish
