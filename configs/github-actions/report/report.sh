#!/usr/bin/env bash
# Ends the gateway that start.sh started, and leaves its record with a page of it in
# $RUNNER_TEMP/outgate/report; the summary becomes the job's.
set -euo pipefail
umask 077

folder=$RUNNER_TEMP/outgate
report=$folder/report
[ -f "$folder/pid" ] || {
    echo "::error title=outgate::no gateway was started in this job"
    exit 1
}
mkdir -p "$report"
pid=$(cat "$folder/pid")
# What runs has its ten seconds (`--drain`).
kill -TERM "$pid" 2>/dev/null || echo "::warning title=outgate::the gateway had ended before"
for _ in {1..100}; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
done
cp "$folder/gateway.log" "$folder/record.jsonl" "$report"
record=$report/record.jsonl
options=()
for what in $OUTGATE_FAIL_ON; do
    options+=(--fail-on "$what")
done
status=0
outgate audit verify "$record" || status=1
outgate audit report --output "$report/report.html" "$record" || status=1
outgate audit summary "${options[@]}" "$record" >>"$GITHUB_STEP_SUMMARY" || status=1
exit "$status"
