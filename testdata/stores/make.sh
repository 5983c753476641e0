#!/bin/sh
# Writes to standard output what a version of terrarium leaves in a session
# directory, as SQL: make.sh TERRARIUM ALARM, where TERRARIUM is the program, built
# from a commit of the version, and ALARM a module that sets a timer when it starts.
# See README.md.
set -eu
terrarium=$(realpath "$1")
alarm=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$alarm" alarm.wasm
run() { "$terrarium" exec --session S >>log; }

run <<'OPS'
{"op": "batch", "ops": [{"op": "add_creature", "name": "fisher", "module": "builtin:relay"}, {"op": "add_creature", "name": "fish", "module": "builtin:tally"}, {"op": "add_creature", "name": "slow", "module": "builtin:tally"}, {"op": "add_creature", "name": "egg", "module": "alarm.wasm"}, {"op": "connect", "from": "fisher", "to": "fish", "channel": "catch"}, {"op": "connect", "from": "fisher", "to": "egg", "channel": "catch"}, {"op": "connect", "from": "fisher", "to": "slow", "channel": "letters"}]}
{"op": "batch", "ops": [{"op": "add_creature", "name": "picker", "module": "builtin:relay"}, {"op": "add_creature", "name": "fruit", "module": "builtin:tally"}, {"op": "connect", "from": "picker", "to": "fruit", "channel": "basket"}]}
{"op": "stop_creature", "creature": "slow"}
{"op": "send", "graph": "fisher", "channel": "catch", "payload": "carp", "producer": "line", "offset": 1}
{"op": "send_to", "creature": "fisher", "payload": "pike"}
{"op": "send_to", "creature": "picker", "payload": "plum"}
{"op": "wait_idle", "timeout": "60s"}
OPS
run <<'OPS'
{"op": "remove_channel", "graph": "fisher", "channel": "letters"}
{"op": "wire", "from": "fish", "to": "fisher", "with_content": true, "name": "echo"}
{"op": "connect", "from": "fisher", "to": "fruit", "channel": "market"}
{"op": "send_to", "creature": "fisher", "payload": "perch"}
{"op": "wait_idle", "timeout": "60s"}
{"op": "disconnect", "from": "fisher", "to": "fruit"}
{"op": "send_to", "creature": "picker", "payload": "peach"}
{"op": "wait_idle", "timeout": "60s"}
OPS
for db in S/catalog.db S/stores/*.db; do
	echo "-- ${db#S/} --"
	sqlite3 "$db" .dump
	for pragma in application_id user_version; do
		echo "PRAGMA $pragma = $(sqlite3 "$db" "PRAGMA $pragma");"
	done
done
