#!/bin/sh
# The creatures of one session request help from another: run.sh [DIR]. It needs
# terrarium on the PATH; with DIR the session is kept there.
set -eu
steps=examples/rescue/by-creatures
session=${1:-}
if [ -z "$session" ]; then
	session=$(mktemp -d)
	trap 'rm -rf "$session"' EXIT
fi
case $session in
/*) ;;
*) session=$PWD/$session ;;
esac
cd "$(dirname "$0")/../../.." # the steps name recipes as seen from the top of the repository

operate() { terrarium exec --session "$session"; }

# introduce sends the id of the helicopter to the north.
introduce() {
	helicopter=$(echo '{"op": "status", "graph": "helicopter"}' | operate |
		grep -oE '"id":"c[^"]*","name":"helicopter"' | cut -d'"' -f4)
	echo '{"op": "send", "channel": "contact", "payload": "'"$helicopter"'"}' | operate >/dev/null
}

for step in 1-apart 2-avalanche 3-together 4-all-well; do
	echo "--- $step"
	# The steps send messages; the creatures decide what to do about them.
	operate <"$steps/$step.jsonl" | grep '"error":' || :
	operate <examples/rescue/look.jsonl
	if [ $step = 1-apart ]; then introduce; fi
done
echo "--- what became of the graphs"
terrarium events "$session" --kind topology_changed | grep -oE '"kind":"(merge|split)"' | uniq
echo "--- lineage"
terrarium session lineage "$session"
