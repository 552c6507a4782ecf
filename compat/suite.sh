# What the runners of clients' own test suites have in common: each test's result beside Apache Kafka's.
# Sourced after common.sh.
#
# $here/kafka.txt has a line per test: its name, what it does on Apache Kafka 4.4 (pass, fail or skip), and
# the APIs that it is about, where Dohle may lack them. While the broker does not advertise one of those
# the test is not run and counts for nothing; from then on it must do what it does on Apache Kafka.
#
# A run writes lines of NAME VERDICT SECONDS into $results/verdicts, and what a test printed into
# $results/NAME.log, "/" as "+"; they stay until the next. A run of the whole suite then rewrites kafka.txt
# on Apache Kafka, and on Dohle the table of docs/COMPATIBILITY.md.
suite=$(basename "$here")
results=$(cache_dir "$suite")/results
whole=yes # no, when some of the tests or less data were asked for

# As $suite_tests, all of kafka.txt, with $kafka_verdict and $suite_apis of each; $missing_apis is what the
# broker does not advertise of those.
begin_suite() {
    local name verdict apis code
    declare -gA kafka_verdict=() suite_apis=()
    suite_tests=() rows=
    while read -r name verdict apis; do
        suite_tests+=("$name")
        kafka_verdict[$name]=$verdict
        suite_apis[$name]=$apis
    done < "$here/kafka.txt"
    # shellcheck disable=SC2086
    missing_apis=$("$compat/served.py" "$broker" $(printf '%s\n' "${suite_apis[@]}" | tr ' ' '\n' | sort -u))
    code=$?
    rm -rf "$results"
    mkdir -p "$results" && touch "$results/verdicts"
    [ $code -ne 2 ]
}

waits_for() { # NAME
    local api
    for api in ${suite_apis[$1]:-}; do
        case " $missing_apis " in
        *" $api "*) echo "$api" ;;
        esac
    done | paste -sd ' '
}

# Nothing is learnt from a test that fails on Apache Kafka.
judge() { # NAME
    local name=$1 kafka=${kafka_verdict[$1]:-} ours seconds waits
    waits=$(waits_for "$name")
    read -r ours seconds < <(awk -v name="$name" '$1 == name { print $2, $3 }' "$results/verdicts")
    ours=${ours:-none}
    if [ -n "$waits" ]; then
        ours="not served"
        skip "$name" "the broker does not serve $waits"
    elif [ "$ours" = "$kafka" ] || [ "$kafka $ours" = "fail pass" ]; then
        passed=$((passed + 1))
        echo "ok    $name: $ours in $seconds s, Kafka: $kafka"
    else
        failed=$((failed + 1))
        echo "FAIL  $name: $ours, Kafka: ${kafka:-not in kafka.txt}"
        tail -n 8 "$results/${name//\//+}.log" 2>/dev/null | cut -c 1-300 | sed 's/^/      | /'
    fi
    rows+="| $name | $kafka | $ours | ${waits:+waits for $waits} |"$'\n'
}

# Those that kafka.txt does not know.
new_tests() {
    cut -d ' ' -f 1 "$results/verdicts" | grep -vxFf <(cut -d ' ' -f 1 "$here/kafka.txt")
}

print_table() {
    printf '%s\n' '| test | Apache Kafka 4.4 | Dohle | |' '|---|---|---|---|'
    printf '%s' "$rows"
}

write_kafka() {
    local name ours
    for name in "${suite_tests[@]}"; do
        ours=$(awk -v name="$name" '$1 == name { print $2 }' "$results/verdicts")
        echo "$name ${ours:-none}${suite_apis[$name]:+ ${suite_apis[$name]}}"
    done > "$work/kafka.txt"
    cp "$work/kafka.txt" "$here/kafka.txt"
}

# After the run, with the names of some tests or all.
end_suite() { # NAME...
    local name new=()
    [ $whole = no ] || mapfile -t new < <(new_tests)
    for name in "$@" "${new[@]}"; do
        judge "$name"
    done
    check "the broker stops cleanly" stop_broker
    case $whole:$broker_kind in
    yes:dohle) print_table | write_table "$suite" ;;
    yes:kafka) suite_tests+=("${new[@]}") && write_kafka ;;
    esac
}
