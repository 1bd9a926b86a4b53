#!/usr/bin/env bash
# Starts a gateway for the rest of a job: for `outgate run --gateway`, and as a proxy for
# containers. Its files lie in $RUNNER_TEMP/outgate; report.sh ends it.
set -euo pipefail
umask 077

fail() {
    echo "::error title=outgate::$1"
    exit 1
}

folder=$RUNNER_TEMP/outgate
command -v outgate >/dev/null || fail "outgate is not installed: install its package in a step before"
[ -f "$OUTGATE_POLICY" ] || fail "there is no policy file $OUTGATE_POLICY"
mkdir "$folder" || fail "a gateway was started in this job already"

address=127.0.0.1
listen=()
if [ -n "$OUTGATE_NETWORK" ]; then
    # Internal: nothing is routed out of it. The runner is its one other neighbour.
    address=172.31.78.1
    docker network create --internal --subnet 172.31.78.0/24 --gateway "$address" "$OUTGATE_NETWORK" >/dev/null
    listen=(--proxy-plaintext)
fi

outgate ca create "$folder/ca" >/dev/null
outgate ca bundle --output "$folder/bundle.pem" "$folder/ca"
# Whoever a container runs as reads it.
chmod 644 "$folder/bundle.pem"
token=$(outgate token create job --tokens "$folder/tokens")
# Lines of the log that show it show asterisks.
echo "::add-mask::$token"

setsid nohup outgate gateway --listen "$folder/gate" --proxy "$address:3128" "${listen[@]}" \
    --tokens "$folder/tokens" --ca "$folder/ca" --policy "$OUTGATE_POLICY" \
    --audit "$folder/record.jsonl" >"$folder/gateway.log" 2>&1 </dev/null &
pid=$!
echo "$pid" >"$folder/pid"
for _ in {1..150}; do
    # Its own page, which whoever has the token gets.
    if curl -fsS -m 5 -x "http://job:$token@$address:3128" -o "$folder/rules.txt" http://outgate.invalid/ 2>/dev/null; then
        {
            echo "gateway=$folder/gate"
            echo "proxy=http://job:$token@$address:3128"
            echo "bundle=$folder/bundle.pem"
        } >>"$GITHUB_OUTPUT"
        exit 0
    fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
done
cat "$folder/gateway.log"
fail "the gateway did not start"
