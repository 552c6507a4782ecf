#!/bin/bash
# Apache Kafka's console tools, one after the other: compat/kafka-tools/run.sh DOHLE [quick]. What a tool
# prints goes to $work/said.
dohle=$1
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../kafka.sh"

limit=120
prefix=tools-$$
broker_settings=(offsets.topic.num.partitions=4 group.initial.rebalance.delay.ms=0)
topics="TopicCommand --topic $prefix-topic"
groups=consumer.group.ConsumerGroupCommand
configs="ConfigCommand --entity-type"

# on CLASS ARG...: the tool, on the broker.
on() {
    local class=$1
    shift
    kafka_tool "$class" --bootstrap-server "$broker" "$@" > "$work/said" 2>&1
}

# says REGEX... -- CLASS ARG...: the tool succeeds, and each REGEX is in what it prints.
says() {
    local wanted=()
    while [ "$1" != -- ]; do
        wanted+=("$1")
        shift
    done
    shift
    on "$@" || { cat "$work/said"; return 1; }
    said "${wanted[@]}"
}

said() {
    local regex
    for regex in "$@"; do
        grep -qE -- "$regex" "$work/said" || { echo "not said: $regex"; cat "$work/said"; return 1; }
    done
}

# The tool says no, whatever its status is.
refuses() { # REGEX CLASS ARG...
    local regex=$1
    shift
    on "$@"
    said "$regex"
}

# The tool says nothing of REGEX.
omits() { # REGEX CLASS ARG...
    local regex=$1
    shift
    on "$@" && ! grep -E -- "$regex" "$work/said"
}

# ------------------------------------------------------------------ topics

tool_topics() {
    check "kafka-topics --create" on $topics --create --partitions 2 --config retention.ms=86400000
    check "kafka-topics --create again" refuses 'TopicExistsException' $topics --create --partitions 2
    check "kafka-topics --create --if-not-exists" on $topics --create --if-not-exists
    check "kafka-topics --list" says "^$prefix-topic\$" -- TopicCommand --list
    served "kafka-topics --describe" DescribeConfigs &&
        check "kafka-topics --describe" says 'PartitionCount: 2.*Configs:.*retention.ms=86400000' \
            'Partition: 0.*Leader: 1.*Replicas: 1.*Isr: 1' 'Partition: 1' -- $topics --describe
    served "kafka-topics --alter" CreatePartitions || return
    check "kafka-topics --alter" on $topics --alter --partitions 4
    check "kafka-topics --alter to fewer" refuses 'InvalidPartitionsException' $topics --alter --partitions 3
    check "kafka-get-offsets after --alter" says "^$prefix-topic:3:0\$" -- GetOffsetShell --topic "$prefix-topic"
}

tool_topics_delete() {
    check "kafka-topics --delete" on $topics --delete
    check "kafka-topics --list after --delete" omits "^$prefix-topic\$" TopicCommand --list
    check "kafka-topics --delete again" refuses 'does not exist' $topics --delete
}

# ------------------------------------------------------------------ producer, consumer

# 3000 lines with keys, tabs between: the console tools' own separator.
tool_produce() { # OPTION...
    kafka_tool ConsoleProducer --bootstrap-server "$broker" --topic "$prefix-topic" \
        --reader-property parse.key=true "$@" < "$work/keyed"
}

tool_consume() { # OPTION...
    kafka_tool consumer.ConsoleConsumer --bootstrap-server "$broker" --topic "$prefix-topic" \
        --formatter-property print.key=true --timeout-ms 30000 "$@"
}

consumes_all() {
    tool_consume --from-beginning --max-messages 3000 > "$work/out" &&
        LC_ALL=C sort "$work/out" | cmp - "$work/keyed.sorted"
}

# Each partition alone, without a group.
consumes_partitions() {
    local p n
    : > "$work/out"
    on GetOffsetShell --topic "$prefix-topic" || return
    cp "$work/said" "$work/ends"
    while IFS=: read -r _ p n; do
        [ "$n" = 0 ] || tool_consume --partition "$p" --offset earliest --max-messages "$n" >> "$work/out" < /dev/null || return
    done < "$work/ends"
    LC_ALL=C sort "$work/out" | cmp - "$work/keyed.sorted"
}

# Two runs in one group: the second goes on where the first ended.
consumes_in_turns() {
    tool_consume --group "$prefix-turns" --from-beginning --max-messages 1000 > "$work/out" &&
        tool_consume --group "$prefix-turns" --max-messages 2000 >> "$work/out" &&
        LC_ALL=C sort "$work/out" | cmp - "$work/keyed.sorted"
}

tool_clients() {
    head -n 3000 "$work/input" | tr -d '\r' | awk '{ print "key-" NR "\t" $0 }' | LC_ALL=C grep -a '^[ -~	]*$' > "$work/keyed"
    while [ "$(wc -l < "$work/keyed")" -lt 3000 ]; do
        echo "filler-$(wc -l < "$work/keyed")	line" >> "$work/keyed"
    done
    LC_ALL=C sort "$work/keyed" > "$work/keyed.sorted"
    check "kafka-console-producer" tool_produce --compression-codec zstd
    check "kafka-console-consumer --partition" consumes_partitions
    served "kafka-console-consumer" FindCoordinator JoinGroup OffsetCommit OffsetFetch || return
    check "kafka-console-consumer" consumes_all
    check "kafka-console-consumer --group" consumes_in_turns
}

# ------------------------------------------------------------------ offsets, records, log directories

# get-offsets' sum over the partitions.
offsets_sum_to() { # N TIME
    on GetOffsetShell --topic "$prefix-topic" --time "$2" || return
    [ "$(awk -F: '{ n += $3 } END { print n + 0 }' "$work/said")" -eq "$1" ] || { cat "$work/said"; return 1; }
}

tool_offsets() {
    check "kafka-get-offsets" offsets_sum_to 3000 latest
    check "kafka-get-offsets --time earliest" offsets_sum_to 0 earliest
    check "kafka-get-offsets --time 1" offsets_sum_to 0 1
    check "kafka-get-offsets --time max-timestamp" says "^$prefix-topic:0:[0-9]+\$" -- \
        GetOffsetShell --topic-partitions "$prefix-topic:0" --time max-timestamp
}

deletes_records() {
    echo "{\"partitions\": [{\"topic\": \"$prefix-topic\", \"partition\": 0, \"offset\": 10}], \"version\": 1}" \
        > "$work/offsets.json"
    says "partition: $prefix-topic-0	low_watermark: 10" -- DeleteRecordsCommand --offset-json-file "$work/offsets.json"
}

tool_records() {
    served "kafka-delete-records" DeleteRecords || return
    check "kafka-delete-records" deletes_records
    check "kafka-get-offsets --time earliest after it" offsets_sum_to 10 earliest
}

tool_log_dirs() {
    served "kafka-log-dirs" DescribeLogDirs || return
    check "kafka-log-dirs" says '"broker":1' "\"partition\":\"$prefix-topic-0\",\"size\":[1-9][0-9]*,\"offsetLag\":0,\"isFuture\":false" \
        -- LogDirsCommand --describe --topic-list "$prefix-topic"
}

# ------------------------------------------------------------------ configs

tool_topic_configs() {
    served "kafka-configs of topics" DescribeConfigs IncrementalAlterConfigs || return
    local topic="$configs topics --entity-name $prefix-topic"
    check "kafka-configs: describe a topic" says 'retention.ms=86400000 ' -- $topic --describe
    check "kafka-configs: all of a topic" says 'cleanup.policy=delete ' 'segment.bytes=' -- $topic --describe --all
    check "kafka-configs: alter a topic" on $topic --alter --add-config segment.bytes=2000000,cleanup.policy=[compact,delete] --delete-config retention.ms
    check "kafka-configs: the topic is altered" says 'segment.bytes=2000000 ' 'cleanup.policy=compact,delete ' -- $topic --describe
    check "kafka-configs: and no more than that" omits 'retention.ms=86400000' $topic --describe
    check "kafka-configs: a bad value" refuses 'InvalidConfigurationException' $topic --alter --add-config segment.bytes=x
    check "kafka-configs: an unknown key" refuses 'InvalidConfigurationException' $topic --alter --add-config no.such.key=1
}

tool_broker_configs() {
    served "kafka-configs of brokers" DescribeConfigs IncrementalAlterConfigs || return
    local one="$configs brokers --entity-name 1" all="$configs brokers --entity-default"
    check "kafka-configs: all of a broker" says 'log.segment.bytes=' 'advertised.listeners=' -- $one --describe --all
    check "kafka-configs: alter a broker" on $one --alter --add-config message.max.bytes=2000001
    check "kafka-configs: the broker is altered" says 'message.max.bytes=2000001 ' -- $one --describe
    check "kafka-configs: alter all brokers" on $all --alter --add-config message.max.bytes=2000002
    check "kafka-configs: all brokers are altered" says 'message.max.bytes=2000002 ' -- $all --describe
    check "kafka-configs: back" on $one --alter --delete-config message.max.bytes
    check "kafka-configs: the default shines through" says 'message.max.bytes=2000002 .*DYNAMIC_DEFAULT_BROKER_CONFIG' -- $one --describe --all
    check "kafka-configs: all back" on $all --alter --delete-config message.max.bytes
    check "kafka-configs: a read-only key" refuses 'InvalidRequestException|InvalidConfigurationException' $one --alter --add-config broker.rack=x
}

# ------------------------------------------------------------------ groups

# The offsets and the lag that --describe tells, in total.
group_has() { # OFFSETS LAG
    on $groups --describe --group "$prefix-turns" || return
    awk -v topic="$prefix-topic" -v want="$*" '$2 == topic { offset += $4; lag += $6 }
        END { exit offset + 0 " " lag + 0 != want }' "$work/said" || { cat "$work/said"; return 1; }
}

reset() { # OPTION...
    on $groups --reset-offsets --group "$prefix-turns" --topic "$prefix-topic" "$@"
}

member_is_there() {
    on $groups --describe --group "$prefix-live" --members && grep -qE "^$prefix-live .* 4 *\$" "$work/said"
}

# A group with a member: its state, its partitions, and that it cannot be deleted.
tool_live_group() {
    kafka_tool consumer.ConsoleConsumer --bootstrap-server "$broker" --topic "$prefix-topic" --group "$prefix-live" \
        > "$work/live" 2>&1 &
    client_pid=$!
    check "kafka-consumer-groups --describe --members" wait_for 60 member_is_there
    check "kafka-consumer-groups --describe --state" says 'Stable +1 *$' -- $groups --describe --group "$prefix-live" --state
    check "kafka-consumer-groups --delete of a live group" refuses 'GroupNotEmptyException' $groups --delete --group "$prefix-live"
    check "kafka-consumer-groups --reset-offsets of a live group" refuses 'inactive|current state is Stable' \
        $groups --reset-offsets --group "$prefix-live" --topic "$prefix-topic" --to-earliest --execute
    pkill -TERM -P "$client_pid"
    wait "$client_pid" 2>/dev/null
    client_pid=
}

tool_groups() {
    served "kafka-consumer-groups" FindCoordinator ListGroups DescribeGroups OffsetFetch OffsetCommit || return
    check "kafka-consumer-groups --list" says "^$prefix-turns\$" -- $groups --list
    check "kafka-consumer-groups --describe" group_has 3000 0
    check "kafka-consumer-groups --describe --state, empty" says 'Empty +0 *$' -- $groups --describe --group "$prefix-turns" --state
    check "kafka-consumer-groups --reset-offsets --dry-run" reset --to-earliest --dry-run
    check "kafka-consumer-groups: nothing is reset" group_has 3000 0
    check "kafka-consumer-groups --reset-offsets --to-earliest" reset --to-earliest --execute
    check "kafka-consumer-groups: reset" group_has 0 3000
    check "kafka-consumer-groups --reset-offsets --shift-by" reset --shift-by 5 --execute
    check "kafka-consumer-groups: shifted" group_has 20 2980
    check "kafka-consumer-groups --reset-offsets --to-latest" reset --to-latest --execute
    check "kafka-consumer-groups: at the end" group_has 3000 0
    tool_live_group
    if served "kafka-consumer-groups --delete-offsets" OffsetDelete; then
        check "kafka-consumer-groups --delete-offsets" on $groups --delete-offsets --group "$prefix-turns" --topic "$prefix-topic"
        check "kafka-consumer-groups: no offsets" group_has 0 0
    fi
    served "kafka-consumer-groups --delete" DeleteGroups || return
    check "kafka-consumer-groups: set again" reset --to-latest --execute
    check "kafka-consumer-groups --delete" on $groups --delete --group "$prefix-turns"
    check "kafka-consumer-groups --list after it" omits "^$prefix-turns\$" $groups --list
    check "kafka-consumer-groups --describe of none" refuses 'does not exist|GroupIdNotFoundException' $groups --describe --group "$prefix-turns"
}

# ------------------------------------------------------------------ all of them

check "fetch" fetch_kafka || finish
make_input "$work/input" 1000000 || exit 1
check "start" start_broker || finish
check "kafka-broker-api-versions" says 'Produce\(0\): ' 'Fetch\(1\): ' -- BrokerApiVersionsCommand
tool_topics
tool_clients
tool_offsets
tool_groups
tool_topic_configs
tool_broker_configs
tool_records
tool_log_dirs
tool_topics_delete
check "stop" stop_broker
finish
