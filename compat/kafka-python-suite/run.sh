#!/bin/bash
# kafka-python's integration tests beside what Apache Kafka 4.4 does (suite.sh):
# compat/kafka-python-suite/run.sh DOHLE [quick] [TEST...], a TEST as in kafka.txt. They take a minute, quick
# or not. Those of SASL and TLS start a broker of their own, and are not run.
dohle=$1
shift
here=$(dirname "$(realpath "$0")")
. "$here/../common.sh"
. "$here/../python.sh"
. "$here/../suite.sh"

version=3.0.12
kafka_version=4.3.0 # what this client takes Apache Kafka 4.4 for
source=$(cache_dir kafka-python-suite)/kafka_python-$version
wanted=()
for word in "$@"; do
    [ "$word" = quick ] || wanted+=("$word") whole=no
done

# Its package has the tests but for two files; they look for a folder of Kafka's, and leave it alone.
fetch_source() {
    local cache
    make_venv || return
    cache=$(dirname "$source")
    [ -e "$source/.complete" ] && return
    rm -rf "$source"
    "$python" -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: --no-build-isolation \
        -d "$cache" "kafka-python==$version" &&
        tar xzf "$source.tar.gz" -C "$cache" && touch "$source/test/__init__.py" &&
        mkdir -p "$source/servers/$kafka_version/kafka-bin" && touch "$source/.complete"
}

# What the tests expect of the broker that they would start.
expect() {
    broker_settings+=(node.id=0 num.partitions=4 group.min.session.timeout.ms=1000
        group.initial.rebalance.delay.ms=0)
    case $broker_kind in
    kafka)
        broker_settings+=(allow.everyone.if.no.acl.found=true
            authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer)
        ;;
    dohle)
        port=$(free_port)
        broker_settings+=("advertised.listeners=PLAINTEXT://127.0.0.1:$port")
        ;;
    esac
}

run_tests() { # NAME...: not these
    cp "$here/service.py" "$source/test/service.py"
    (
        cd "$source" && RESULTS=$results PYTHONPATH=$here KAFKA_URI=kafka://$broker KAFKA_VERSION=$kafka_version \
            timeout -k 5 600 "$python" -m pytest -q -p verdicts -p no:cacheprovider --log-level=INFO --tb=short \
            --timeout=60 --timeout-method=signal "${tests[@]/#/test/integration/}" \
            "${@/#/--deselect=test/integration/}" > "$results/pytest.log" 2>&1
    )
}

check "install" fetch_source || finish
expect
start_broker || exit 1
check "versions" begin_suite || finish
tests=("${wanted[@]}") waiting=()
[ ${#wanted[@]} -gt 0 ] || tests=(test_admin_integration.py test_consumer_integration.py test_producer_integration.py)
for name in "${suite_tests[@]}"; do
    [ -z "$(waits_for "$name")" ] || waiting+=("$name")
done
run_tests "${waiting[@]}"
[ ${#wanted[@]} -gt 0 ] || wanted=("${suite_tests[@]}")
end_suite "${wanted[@]}"
finish
