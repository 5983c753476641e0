package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// eventFlags are the flags of session events.
type eventFlags struct {
	kinds    []string
	creature string
	channel  string
	after    string
	limit    int
	newest   bool
	format   string
}

func sessionEventsCommand(s streams) *cobra.Command {
	f := &eventFlags{}
	cmd := &cobra.Command{
		Use:   "events DIR [SESSION]",
		Short: "List the events of a session",
		Args:  arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(f.format); err != nil {
				return err
			}
			return withView(cmd.Context(), args[0], func(v *sqlitestore.View) error {
				return f.list(cmd.Context(), s, v, optional(args, 1))
			})
		},
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&f.kinds, "kind", nil, "only events of `KIND`; may be repeated")
	fs.StringVar(&f.creature, "creature", "", "only events about a creature, by `NAME` or id")
	fs.StringVar(&f.channel, "channel", "", "only events of a channel, by `NAME` or id")
	fs.StringVar(&f.after, "after", "", "only what is listed after the event of this `ID`")
	fs.IntVar(&f.limit, "limit", 0, "list at most `N` events")
	fs.BoolVar(&f.newest, "newest", false, "with --limit, the last ones rather than the first")
	formatFlag(cmd, &f.format)
	return cmd
}

// pageSize is how many events are read at a time.
const pageSize = 1000

func (f *eventFlags) list(ctx context.Context, s streams, v *sqlitestore.View, session string) error {
	info, err := pick(ctx, v, session)
	if err != nil {
		return err
	}
	names, err := namesOf(ctx, v, info.Session)
	if err != nil {
		return failWith(exitSession, err)
	}
	q := engine.HistoryQuery{Newest: f.newest}
	if q.Kinds, err = terrarium.ParseKinds("session events", f.kinds); err != nil {
		return failWith(exitUsage, err)
	}
	if q.After, err = engine.ParseEventID(f.after); err != nil {
		return usage("--after: %w", err)
	}
	if q.Creature, err = names.creature(f.creature); err != nil {
		return err
	}
	if q.Channel, err = names.channel(f.channel); err != nil {
		return err
	}
	out := bufio.NewWriter(s.out)
	err = f.pages(ctx, v, info.Session, q, func(ev *engine.Event) error { return f.print(out, names, ev) })
	return errors.Join(failWith(exitSession, err), failWith(exitFailed, out.Flush()))
}

// pages reads all events that are asked for, a page at a time.
func (f *eventFlags) pages(ctx context.Context, v *sqlitestore.View, session engine.SessionID, q engine.HistoryQuery, each func(*engine.Event) error) error {
	for left := f.limit; ; {
		q.Limit = pageSize
		if f.limit > 0 {
			q.Limit = left
			if !f.newest {
				q.Limit = min(left, pageSize)
			}
		}
		events, err := v.History(ctx, session, q)
		if err != nil {
			return err
		}
		for i := range events {
			if err := each(&events[i]); err != nil {
				return err
			}
		}
		left -= len(events)
		if len(events) < q.Limit || f.newest || (f.limit > 0 && left <= 0) {
			return nil
		}
		q.After = events[len(events)-1].ID
	}
}

func (f *eventFlags) print(out *bufio.Writer, names *names, ev *engine.Event) error {
	if f.format == "json" {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(terrarium.NewEventRecord(ev))
	}
	line, err := eventText(ev, names, textStyle{kindWidth: 17})
	if err != nil {
		return err
	}
	_, err = out.WriteString(line)
	return err
}

// textStyle is how lines of text look.
type textStyle struct {
	kindWidth int
	colour    bool
}

// eventText is an event as a line of text.
func eventText(ev *engine.Event, names *names, style textStyle) (string, error) {
	r := terrarium.NewEventRecord(ev)
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
	where := names.ofChannel(ev.Channel)
	if ev.Seq > 0 {
		where += fmt.Sprintf("#%d", ev.Seq)
	}
	at := time.Unix(0, ev.Time).UTC().Format(eventTime)
	kind := fmt.Sprintf("%-*s", style.kindWidth, r.Kind)
	if style.colour {
		at, kind = dim+at+plain, kindColour(ev.Kind)+kind+plain
	}
	about := printable(fmt.Sprintf("%-14s  %-16s  %s", names.ofCreature(ev.Creature), where, payload))
	about = strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(about) // names may have them
	return strings.TrimRight(at+"  "+kind+"  "+about, " ") + "\n", nil
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
func kindColour(k engine.EventKind) string {
	switch k {
	case engine.EventTurnFailed, engine.EventCreatureFailed, engine.EventQuarantined, engine.EventDeadLetter, engine.EventStoreSetAside:
		return red
	case engine.EventPolicyDenied, engine.EventLagged:
		return yellow
	case engine.EventTopologyChanged, engine.EventSessionForked, engine.EventSessionMerged, engine.EventParentLinkChanged:
		return cyan
	}
	return plain
}
