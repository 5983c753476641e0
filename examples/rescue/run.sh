#!/bin/sh
# Two sessions merge and split again: run.sh [DIR]. It needs terrarium on
# the PATH; with DIR the session is kept there.
set -eu
steps=examples/rescue
session=${1:-}
if [ -z "$session" ]; then
	session=$(mktemp -d)
	trap 'rm -rf "$session"' EXIT
fi
case $session in
/*) ;;
*) session=$PWD/$session ;;
esac
cd "$(dirname "$0")/../.." # the steps name recipes as seen from the top of the repository

for step in 1-apart 2-together 3-apart; do
	echo "--- $step"
	# What became of the graphs, and what went wrong, if anything.
	terrarium exec --session "$session" <"$steps/$step.jsonl" | grep -oE '"(delta|error)":.*' || :
	# What the scouts and the helicopter have counted.
	terrarium exec --session "$session" <"$steps/look.jsonl"
done
echo "--- lineage"
terrarium session lineage "$session"
