#!/bin/sh
# A graph that builds itself: run.sh [DIR]. It needs terrarium on the PATH; with
# DIR the session is kept there.
set -eu
example=$(dirname "$0")
session=${1:-}
if [ -z "$session" ]; then
	session=$(mktemp -d)
	trap 'rm -rf "$session"' EXIT
fi

# who lists the creatures in the drawing of a recipe or of a session.
who() { terrarium graph "$1" -o mermaid | grep -oE 'c[0-9]+\["[^"<]*' | cut -d'"' -f2 | sort | tr '\n' ' '; }

echo "--- in the recipe: $(who "$example")"
# The workers may stay for an hour when they are done, so that they can be looked at.
terrarium run "$example" --input "tasks=$example/tasks.txt" --output results --exit-when-idle --session "$session" \
	--var linger=3600000 -q | sort >"$session.results"
echo "--- when all is done: $(who "$session")"
printf '%s\n' '{"op": "send", "channel": "dismiss", "payload": ""}' '{"op": "wait_idle"}' |
	terrarium exec --session "$session" >/dev/null
echo "--- dismissed: $(who "$session")"
echo "--- results: $(wc -l <"$session.results") of $(wc -l <"$example/tasks.txt") tasks, such as"
grep -m 1 '^factor' "$session.results"
grep -m 1 '^sha256' "$session.results"
grep -m 1 '^words' "$session.results"
echo "--- the graph over time"
terrarium events "$session" --kind creature_started --kind creature_stopped | awk '
	$2 == "creature_started" { members++; sign = "+" }
	$2 == "creature_stopped" { members--; sign = "-" }
	{ printf "%s  %s %-8s %s\n", substr($1, 12, 12), sign, $3, substr("############", 1, members) }'
rm "$session.results"
