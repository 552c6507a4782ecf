# Three nodes in the place of the one broker: sourced after common.sh and kafka.sh. $broker is the addresses of all
# three; in a setting {id} is the node's. Directories are those of the first start, ports are not.
three_pid=

three_program() {
    case $broker_kind in
    dohle) printf '%s\n' --dohle "$dohle" ;;
    kafka) printf '%s\n' --java "$(json_words java -Xms64m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
        "$(kafka_log4j WARN)" -cp "$kafka_jars/*")" ;;
    esac
}

three_ended() {
    ! kill -0 "$three_pid" 2>/dev/null
}

three_serve() {
    [ -s "$work/brokers" ] || three_ended
}

start_broker() {
    local program
    rm -f "$work/brokers"
    mapfile -t program < <(three_program)
    python3 "$compat/cluster/serve.py" "${program[@]}" --directory "$work/nodes" --brokers "$work/brokers" \
        "${broker_settings[@]}" 2>> "$work/stderr" &
    three_pid=$!
    wait_for 300 three_serve && broker=$(cat "$work/brokers") && [ -n "$broker" ] && return
    echo "the nodes do not start:"
    tail -5 "$work/stderr"
    return 1
}

stop_broker() {
    kill -TERM "$three_pid"
    wait_for $((${stop_seconds:-60} + 10)) three_ended
    wait "$three_pid"
    local code=$?
    three_pid=
    return $code
}

end_three() {
    [ -z "$three_pid" ] || stop_broker
    end_all
}
trap end_three EXIT
