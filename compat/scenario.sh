# The scenario of README.md: what every client goes through, driven through the client's program and
# checked here. Sourced after common.sh; then run.sh sets these, and calls scenario.
client=()
client_codecs=$codecs
client_modes="idempotent plain"
client_protocols="classic"
bytes=20000000 limit=300

prefix=$(basename "$here")-$$
broker_settings+=(
    offsets.topic.num.partitions=4
    group.initial.rebalance.delay.ms=0
    group.consumer.session.timeout.ms=6000 group.consumer.min.session.timeout.ms=6000
    group.consumer.heartbeat.interval.ms=1000 group.consumer.min.heartbeat.interval.ms=1000
)

call() {
    timeout "$limit" "${client[@]}" "$@"
}

line_count() {
    wc -l < "$1"
}

# records FIRST FILE [OPTION...] OUT...: the records in the OUTs are the lines of FILE.
records() {
    "$compat/records.py" "$@"
}

# ------------------------------------------------------------------ topics, produce, consume

create() { # TOPIC N
    call create "$broker" "$@"
}

delete() { # TOPIC
    call delete "$broker" "$@"
}

# has_topics N: that many of this run's are there.
has_topics() {
    call topics "$broker" > "$work/topics" && [ "$(grep -c "^$prefix-" "$work/topics")" -eq "$1" ]
}

produce() { # TOPIC CODEC FILE FIRST MODE
    local said
    said=$(call produce "$broker" "$@") && [ "$said" = "produced $(line_count "$3")" ]
}

consume_is() { # TOPIC FILE
    local said
    said=$(call consume "$broker" "$1" "$work/out") || return
    [ "$said" = "consumed $(line_count "$2")" ] || { echo "$said"; return 1; }
    records 0 "$2" "$work/out"
}

all_topics() { # COMMAND...: with each codec, mode and topic
    local mode codec
    for mode in $client_modes; do
        for codec in $client_codecs; do
            "$@" "$codec" "$mode" "$prefix-$codec-$mode"
        done
    done
}

create_and_produce() { # CODEC MODE TOPIC
    check "create: $3" create "$3" 3
    check "produce: $1 $2" produce "$3" "$1" "$work/input" 0 "$2"
}

check_consume() { # CODEC MODE TOPIC
    check "consume: $1 $2" consume_is "$3" "$work/input"
}

check_delete() { # CODEC MODE TOPIC
    check "delete: $3" delete "$3"
}

# ------------------------------------------------------------------ members of a group

declare -A member_pid

# What a failure is told with.
member_logs() {
    tail -n 3 "$work"/member-*.log "$work"/member-*.err
    return 1
}

start_member() { # NAME
    local file=$work/member-$1
    "${client[@]}" member "$broker" "$topic" "$group" "$file.out" "$file.stop" "$protocol" \
        > "$file.log" 2> "$file.err" &
    member_pid[$1]=$!
    members+=($!)
}

ended() {
    ! kill -0 "$1" 2>/dev/null
}

stop_member() { # NAME: its status is the program's
    local pid=${member_pid[$1]}
    touch "$work/member-$1.stop"
    wait_for 30 ended "$pid" || kill -9 "$pid"
    wait "$pid" || member_logs
}

kill_member() { # NAME
    kill -9 "${member_pid[$1]}"
    wait "${member_pid[$1]}" 2>/dev/null
    true
}

assigned() { # NAME: what it says that it has
    sed -n 's/^assigned *//p' "$work/member-$1.log" | tail -1
}

# share COUNT NAME...: the members have COUNT partitions each, and no two the same.
shared() {
    local n=$1 name all=
    shift
    for name in "$@"; do
        # shellcheck disable=SC2046
        [ "$(assigned "$name" | wc -w)" -eq "$n" ] || return
        all="$all $(assigned "$name")"
    done
    # shellcheck disable=SC2086
    [ -z "$(printf '%s\n' $all | sort | uniq -d)" ]
}

share() {
    wait_for 60 shared "$@" || member_logs
}

# The records that the members' commits cover.
commits() {
    cat "$work"/member-*.log | awk '/^committed / && $3 > top[$2] { top[$2] = $3 }
        END { for (p in top) n += top[p]; print n + 0 }'
}

covered() {
    [ "$(commits)" -eq "$sent" ]
}

caught_up() {
    wait_for "$limit" covered || { echo "$(commits) of $sent records are committed"; member_logs; }
}

# The coordinator's word for it.
committed_everything() {
    call committed "$broker" "$topic" "$group" > "$work/committed" || return
    [ "$(awk '{ n += $2 } END { print n + 0 }' "$work/committed")" -eq "$sent" ] ||
        { cat "$work/committed"; return 1; }
}

send_part() { # N, from 0: the next part of the input, every codec in its turn
    # shellcheck disable=SC2206
    local all=($client_codecs) file=$work/part.$1
    local codec=${all[$(($1 % ${#all[@]}))]}
    check "produce part $1: $codec" produce "$topic" "$codec" "$file" "$sent" "${client_modes%% *}"
    sent=$((sent + $(line_count "$file")))
}

all_read() { # OPTION...: everything sent is in the members' files
    head -n "$sent" "$work/input" > "$work/sent"
    records 0 "$work/sent" "$@" "$work"/member-*.out
}

has_records() { # NAME
    [ -s "$work/member-$1.out" ]
}

begin_group() { # WHAT
    topic=$prefix-$1-$protocol group=$prefix-$1-$protocol sent=0
    rm -f "$work"/member-*
    check "create: $topic" create "$topic" 6
}

# At rest: what is committed is everything, so a rebalance may repeat nothing.
group_at_rest() {
    send_part 0
    start_member a
    check "one member has all partitions" share 6 a
    check "one member reads" caught_up
    start_member b
    check "a second member joins" share 3 a b
    send_part 1
    check "both read" caught_up
    check "both have records" has_records b
    check "one leaves" stop_member b
    check "the other has all partitions" share 6 a
    send_part 2
    check "the other reads" caught_up
    check "everything came once" all_read
}

group_over_restarts() {
    start_member c
    check "a member joins again" share 3 a c
    send_part 3
    check "stop the broker" stop_broker
    check "start the broker" start_broker
    check "both read on after a restart" caught_up
    send_part 4
    kill_broker
    check "start after kill -9" start_broker
    check "both read on after kill -9" caught_up
    check "nothing is lost" all_read --again
}

# Who comes later begins at the commit.
group_resumes() {
    local before=$sent
    check "leave" stop_member a
    [ ! -e "$work/member-c.log" ] || check "leave too" stop_member c
    check "everything is committed" committed_everything
    if can_restart; then
        check "stop the broker again" stop_broker
        check "start the broker again" start_broker
        check "everything is committed after a restart" committed_everything
    fi
    send_part 5
    start_member d
    check "a new member reads" caught_up
    check "a new member begins at the commit" records "$before" "$work/part.5" --resumed "$work/member-d.out"
    check "a new member leaves" stop_member d
}

group_under_load() {
    begin_group load
    check "produce" produce "$topic" "${client_codecs##* }" "$work/input" 0 "${client_modes%% *}"
    sent=$(line_count "$work/input")
    start_member a
    check "one member begins" wait_for 60 has_records a
    start_member b
    check "both read while one joins" caught_up
    check "two share" share 3 a b
    check "nothing is lost" all_read --again
    [ -n "$quick" ] || group_loses_a_member
    check "leave" stop_member a
    [ -z "$quick" ] || check "leave too" stop_member b
    check "delete: $topic" delete "$topic"
}

group_loses_a_member() {
    kill_member b
    check "a killed member's partitions move" share 6 a
    check "produce after that" produce "$topic" none "$work/part.0" "$sent" "${client_modes%% *}"
    sent=$((sent + $(line_count "$work/part.0")))
    check "the other reads on" caught_up
    check "and what was sent came" all_of_it
}

all_of_it() {
    cat "$work/input" "$work/part.0" > "$work/sent"
    records 0 "$work/sent" --again "$work"/member-*.out
}

# protocol is one that the broker serves.
group_scenario() {
    begin_group group
    group_at_rest
    ! can_restart || group_over_restarts
    group_resumes
    check "delete: $topic" delete "$topic"
    group_under_load
}

# ------------------------------------------------------------------ all of it

scenario() {
    local protocol topic group sent join
    make_input "$work/input" "$bytes" || exit 1
    split -n l/6 -d -a 1 "$work/input" "$work/part."
    check "start" start_broker || finish
    all_topics create_and_produce
    check "topics are there" wait_for 20 has_topics "$(all_topics echo | wc -l)"
    all_topics check_consume
    if can_restart; then
        check "stop" stop_broker
        check "start again" start_broker
        all_topics check_consume
    fi
    for protocol in $client_protocols; do
        join=JoinGroup
        [ "$protocol" = classic ] || join=ConsumerGroupHeartbeat
        served "groups ($protocol)" FindCoordinator $join OffsetCommit OffsetFetch || continue
        group_scenario
    done
    all_topics check_delete
    check "no topic is there" wait_for 20 has_topics 0
    check "stop at the end" stop_broker
}
