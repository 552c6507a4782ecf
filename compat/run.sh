#!/bin/bash
# compat/run.sh [NAME] [quick]: real clients against the broker; all of them without a NAME. The
# binary is $DOHLE, by default build/dohle. A client that is not installed is an error: ./dev setup.
cd "$(dirname "$0")/.." || exit 1
dohle=$(realpath "${DOHLE:-build/dohle}")
quick= names=
for word in "$@"; do
    if [ "$word" = quick ]; then quick=quick; else names="$names $word"; fi
done
[ -x "$dohle" ] || { echo "$dohle is missing: ./dev build" >&2; exit 1; }
status=0
for name in ${names:-kcat librdkafka}; do
    [ -x "compat/$name/run.sh" ] || { echo "no client $name" >&2; exit 2; }
    echo "== $name"
    "compat/$name/run.sh" "$dohle" $quick || status=1
done
exit $status
