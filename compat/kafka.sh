# Apache Kafka from Maven Central's jars: its tools, and itself as a broker. Sourced after common.sh.
# The jars are those of java/pom.xml, copied once.
kafka_jars=$(cache_dir "kafka-$(cksum < "$compat/java/pom.xml" | cut -d ' ' -f 1)")
kafka_controller_port=0
kafka_jvm=(-Xms64m -Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1)

fetch_kafka() {
    [ -e "$kafka_jars/.complete" ] && return
    mvn -q -B -f "$compat/java/pom.xml" dependency:copy-dependencies -DoutputDirectory="$kafka_jars" &&
        touch "$kafka_jars/.complete"
}

# Where log lines go: stderr, of tools only errors.
kafka_log4j() { # LEVEL
    cat > "$work/log4j2-$1.properties" <<P
rootLogger.level = $1
rootLogger.appenderRef.c.ref = C
appender.c.type = Console
appender.c.name = C
appender.c.target = SYSTEM_ERR
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d %p %m (%c)%n
P
    echo "-Dlog4j2.configurationFile=$work/log4j2-$1.properties"
}

kafka_tool() { # CLASS ARG...: org.apache.kafka.tools may be left out
    local class=$1
    shift
    case $class in
    *kafka.*) ;;
    *) class=org.apache.kafka.tools.$class ;;
    esac
    timeout "${limit:-300}" java "${kafka_jvm[@]}" "$(kafka_log4j ERROR)" -cp "$kafka_jars/*" "$class" "$@"
}

# The settings of a lone node; a key given later wins. CONTROLLER is the listener's name.
kafka_properties() { # DIR CONTROLLER [key=value]...
    local dir=$1 controller=$2
    shift 2
    cat <<P
process.roles=broker,controller
node.id=1
listeners=CLIENTS://127.0.0.1:$port,$controller://127.0.0.1:$kafka_controller_port
advertised.listeners=CLIENTS://127.0.0.1:$port
listener.security.protocol.map=CLIENTS:PLAINTEXT,$controller:PLAINTEXT
inter.broker.listener.name=CLIENTS
controller.listener.names=$controller
controller.quorum.bootstrap.servers=127.0.0.1:$kafka_controller_port
log.dirs=$dir
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
P
    printf '%s\n' "$@"
}

kafka_answers() {
    grep -qs 'Kafka Server started' "$work/kafka.log" || ended_kafka
}

ended_kafka() {
    ! kill -0 "$kafka_pid" 2>/dev/null
}

# On DIR as it is, by $work/kafka.properties; the log is $work/kafka.log.
launch_kafka() {
    rm -f "$work/kafka.log"
    java "${kafka_jvm[@]}" "$(kafka_log4j INFO)" -cp "$kafka_jars/*" kafka.Kafka "$work/kafka.properties" \
        > "$work/kafka.out" 2> "$work/kafka.log" &
    kafka_pid=$!
    broker=127.0.0.1:$port
    wait_for 120 kafka_answers && ! ended_kafka && return
    tail -5 "$work/kafka.log"
    return 1
}

start_kafka() { # DIR [key=value]...: on the ports of the first start, with the data of the last
    local dir=$1
    shift
    fetch_kafka || return
    [ "$port" != 0 ] || port=$(free_port)
    [ "$kafka_controller_port" != 0 ] || kafka_controller_port=$(free_port)
    kafka_properties "$dir" CONTROLLER "$@" > "$work/kafka.properties"
    if [ ! -e "$dir/meta.properties" ]; then
        kafka_tool kafka.tools.StorageTool format --standalone -t 5L6g3nShT-eMCtK--X86sw \
            -c "$work/kafka.properties" || return
    fi
    launch_kafka
}

stop_kafka() {
    kill -TERM "$kafka_pid"
    wait_for "${stop_seconds:-60}" ended_kafka || kill -9 "$kafka_pid"
    wait "$kafka_pid"
    local code=$?
    kafka_pid=
    [ $code -eq 143 ] # a JVM that was asked to end
}

kill_kafka() {
    kill -9 "$kafka_pid"
    wait "$kafka_pid" 2>/dev/null
    kafka_pid=
}
