package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

// pageSize is the number of rows read at a time.
const pageSize = 1000

// widestKind is the length of the longest kind's name.
const widestKind = len("creature_session_attached")

// eventText returns an event as a line of text.
func eventText(ev *journal.Event, names *names, colour bool) (string, error) {
	r := operations.NewEventRecord(ev)
	payload := ""
	if r.Payload != nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r.Payload); err != nil {
			return "", err
		}
		payload = strings.TrimSuffix(b.String(), "\n")
	}
	at := time.Unix(0, ev.Time).UTC().Format(eventTime)
	kind := fmt.Sprintf("%-*s", widestKind, r.Kind)
	if colour {
		at, kind = dim+at+plain, kindColour(ev.Kind)+kind+plain
	}
	about := oneLine(fmt.Sprintf("%-14s  %-16s  %s", names.ofCreature(ev.Creature), names.place(ev), payload))
	return strings.TrimRight(at+"  "+kind+"  "+about, " ") + "\n", nil
}

// oneLine makes untrusted text printable on one line; names may contain newlines.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(printable(s))
}

// place returns the channel of an event and the event's number there.
func (n *names) place(ev *journal.Event) string {
	if ev.Seq > 0 {
		return fmt.Sprintf("%s#%d", n.ofChannel(ev.Channel), ev.Seq)
	}
	return n.ofChannel(ev.Channel)
}

// eventTime is the layout of times in lines of text, in UTC.
const eventTime = "2006-01-02T15:04:05.000000000Z"

// Escape sequences of a terminal.
const (
	plain  = "\x1b[0m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
)

// kindColour returns the colour of a kind: failures, denials and changes of graphs have one.
func kindColour(k journal.EventKind) string {
	switch k {
	case journal.EventTurnFailed, journal.EventCreatureFailed, journal.EventQuarantined, journal.EventDeadLetter, journal.EventStoreSetAside:
		return red
	case journal.EventPolicyDenied, journal.EventLagged, journal.EventApprovalAsked:
		return yellow
	case journal.EventTopologyChanged, journal.EventSessionForked, journal.EventSessionMerged, journal.EventParentLinkChanged:
		return cyan
	}
	return plain
}
