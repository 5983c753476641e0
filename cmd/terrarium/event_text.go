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

// pageSize is how many rows are read at a time.
const pageSize = 1000

// widestKind is how long the longest name of a kind is.
const widestKind = len("creature_session_attached")

// eventText is an event as a line of text.
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

// oneLine is a text of unknown origin on one line; names may have more.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(printable(s))
}

// place is the channel of an event, and its number there.
func (n *names) place(ev *journal.Event) string {
	if ev.Seq > 0 {
		return fmt.Sprintf("%s#%d", n.ofChannel(ev.Channel), ev.Seq)
	}
	return n.ofChannel(ev.Channel)
}

// eventTime is the form of times in lines of text, which are in UTC.
const eventTime = "2006-01-02T15:04:05.000000000Z"

// What a terminal obeys.
const (
	plain  = "\x1b[0m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
)

// kindColour tells failures and changes of graphs from everything else.
func kindColour(k journal.EventKind) string {
	switch k {
	case journal.EventTurnFailed, journal.EventCreatureFailed, journal.EventQuarantined, journal.EventDeadLetter, journal.EventStoreSetAside:
		return red
	case journal.EventPolicyDenied, journal.EventLagged:
		return yellow
	case journal.EventTopologyChanged, journal.EventSessionForked, journal.EventSessionMerged, journal.EventParentLinkChanged:
		return cyan
	}
	return plain
}
