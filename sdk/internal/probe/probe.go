// Package probe is a creature that outputs and logs what the host hands to it, so that tests
// can compare the fake host of the kit for Go with the real one. The codes of refused calls
// are in reference/probes.txt.
package probe

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

// Commands are the payloads that the creature knows.
var Commands = []string{"times", "logs", "config", "echo"}

// report collects the answers of one turn.
type report struct {
	t     *terrarium.Turn
	lines strings.Builder
}

func (r *report) note(what string, err error) {
	code := "ok"
	var c terrarium.Code
	if errors.As(err, &c) {
		code = c.Error()
	}
	r.lines.WriteString(what + ": " + code + "\n")
}

// Handle makes the calls of the command in the payload.
func Handle(t *terrarium.Turn) error {
	r := &report{t: t}
	switch {
	case t.Kind() == terrarium.KindTimer:
		r.note("rang "+t.TimerName(), nil)
	case t.Kind() == terrarium.KindMessage && slices.Contains(Commands, string(t.Payload())):
		r.command(string(t.Payload()))
	default:
		return nil
	}
	return t.Output([]byte(r.lines.String()))
}

func (r *report) command(name string) {
	switch name {
	case "times":
		r.times()
	case "logs":
		r.logs()
	case "config":
		r.config()
	case "echo":
		r.note("channel "+r.t.Channel()+" attempt "+strconv.FormatInt(r.t.Attempt(), 10), nil)
	}
}

func (r *report) times() {
	r.note("huge delay", r.t.SetTimer("far", math.MaxInt64, 0, nil))
	r.note("large delay", r.t.SetTimer("farther", math.MaxInt64/1_000_000, 0, nil))
	r.note("huge period", r.t.SetTimer("rare", 2, math.MaxInt64, nil))
	r.note("at once", r.t.SetTimer("now", 0, 0, nil))
	r.note("two at a time", r.t.SetTimer("\u00e4", 2, 0, nil))
}

func (r *report) logs() {
	r.t.Log(terrarium.LevelInfo, "a\xff\xffb")
	r.t.Log(terrarium.LevelInfo, strings.Repeat("x", 64<<10))
	r.t.Log(9, "no level")
	for i := range 300 {
		r.t.Log(terrarium.LevelInfo, strconv.Itoa(i))
	}
}

func (r *report) config() {
	for _, key := range []string{"", "text", "escapes", "pair", "nested", "list", "number", "null", "missing"} {
		value, ok := r.t.Config(key)
		r.note("config "+key+" "+strconv.FormatBool(ok)+" "+strconv.QuoteToASCII(value), nil)
		text, err := r.t.ConfigText(key)
		r.note("text "+strconv.QuoteToASCII(text), err)
	}
}
