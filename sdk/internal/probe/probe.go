// Package probe is a creature that makes unusual calls and outputs how the host answers, so
// that tests can compare the fake host of the kit for Go with the real one.
package probe

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
)

const mib = 1 << 20

// Commands are the payloads that the creature knows.
var Commands = []string{"state", "writes", "headers", "sizes", "sends", "times", "timers", "requests", "logs", "config", "echo"}

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
	case "state":
		r.state()
	case "writes":
		r.writes()
	case "headers":
		r.headers()
	case "sizes":
		r.sizes()
	case "sends":
		r.sends()
	case "times":
		r.times()
	case "timers":
		r.timers()
	case "requests":
		r.requests()
	case "logs":
		r.logs()
	case "config":
		r.config()
	case "echo":
		r.note("channel "+r.t.Channel()+" attempt "+strconv.FormatInt(r.t.Attempt(), 10), nil)
	}
}

// names are keys and names of timers.
var names = []string{"", "k", "a\x00b", "\xff", "\u00e4", strings.Repeat("k", 512), strings.Repeat("k", 513)}

func quoted(name string) string {
	return strconv.Quote(name[:min(len(name), 4)]) + " of " + strconv.Itoa(len(name))
}

func (r *report) state() {
	for _, name := range names {
		r.note("get "+quoted(name), second(r.t.StateGet(name)))
		r.note("set "+quoted(name), r.t.StateSet(name, nil))
		r.note("get again "+quoted(name), second(r.t.StateGet(name)))
	}
	for _, name := range append(names, "other") {
		existed, err := r.t.StateDelete(name)
		r.note("delete "+quoted(name)+" "+strconv.FormatBool(existed), err)
	}
	for _, size := range []int{mib, mib + 1} {
		r.note("value "+strconv.Itoa(size), r.t.StateSet("v", make([]byte, size)))
	}
	var err error
	n := 0
	for ; err == nil && n < 20; n++ {
		err = r.t.StateSet("v"+strconv.Itoa(n), make([]byte, mib))
	}
	r.note("much state at "+strconv.Itoa(n), err)
}

func (r *report) writes() {
	var err error
	n := 0
	for ; err == nil && n < 5000; n++ {
		err = r.t.StateSet("w"+strconv.Itoa(n), nil)
	}
	r.note("write "+strconv.Itoa(n), err)
	r.note("write again", r.t.StateSet("w0", []byte("x")))
	r.note("delete none", second(r.t.StateDelete("none")))
	keys, err := r.t.StateList("w")
	r.note("list "+strconv.Itoa(len(keys)), err)
}

func (r *report) headers() {
	for _, list := range [][]terrarium.Header{
		{{Name: "", Value: "x"}}, {{Name: "x", Value: ""}}, {{Name: "a\x00b", Value: "x"}}, {{Name: "a", Value: "x\x00y"}},
		{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}, {{Name: "Terrarium-Timer", Value: "x"}}, {{Name: "v", Value: "\xff"}},
	} {
		r.note("header "+strconv.Quote(list[0].Name+"="+list[0].Value), r.t.Send("out", []byte("x"), list...))
	}
	r.note("no channel", r.t.Send("nowhere", nil))
	r.note("no alias", r.t.Send("", nil))
	n, err := r.t.SendAll([]byte{0xff})
	r.note("all "+strconv.Itoa(n), err)
}

func (r *report) sizes() {
	for _, size := range []int{0, mib, mib + 1} {
		r.note("send "+strconv.Itoa(size), r.t.Send("out", make([]byte, size)))
		r.note("send_to "+strconv.Itoa(size), r.t.SendTo(r.t.Self(), make([]byte, size)))
	}
	r.note("with a header", r.t.Send("out", make([]byte, mib), terrarium.Header{Name: "h", Value: "v"}))
	var err error
	n := 0
	for ; err == nil && n < 20; n++ {
		err = r.t.Send("out", make([]byte, mib))
	}
	r.note("much at "+strconv.Itoa(n), err)
	r.note("output of a MiB", r.t.Output(make([]byte, mib+1)))
	r.note("reply to none", r.t.Reply(nil))
}

func (r *report) sends() {
	var err error
	n := 0
	for ; err == nil && n < 2000; n++ {
		err = r.t.Send("out", nil)
	}
	r.note("send "+strconv.Itoa(n), err)
}

func (r *report) times() {
	for _, name := range names {
		r.note("timer "+quoted(name), r.t.SetTimer(name, 1000, 0, nil))
	}
	for _, name := range names {
		was, err := r.t.CancelTimer(name)
		r.note("cancel "+quoted(name)+" "+strconv.FormatBool(was), err)
	}
	r.note("negative delay", r.t.SetTimer("t", -1, 0, nil))
	r.note("negative period", r.t.SetTimer("t", 0, math.MinInt64, nil))
	r.note("huge delay", r.t.SetTimer("far", math.MaxInt64, 0, nil))
	r.note("large delay", r.t.SetTimer("farther", math.MaxInt64/1_000_000, 0, nil))
	r.note("huge period", r.t.SetTimer("rare", 2, math.MaxInt64, nil))
	r.note("at once", r.t.SetTimer("now", 0, 0, nil))
	r.note("large payload", r.t.SetTimer("large", 1, 0, make([]byte, mib)))
	r.note("larger payload", r.t.SetTimer("large", 1, 0, make([]byte, mib+1)))
}

func (r *report) timers() {
	var err error
	n := 0
	for ; err == nil && n < 300; n++ {
		err = r.t.SetTimer("t"+strconv.Itoa(n), 1_000_000, 0, nil)
	}
	r.note("timer "+strconv.Itoa(n), err)
	r.note("again", r.t.SetTimer("t0", 1_000_000, 0, nil))
	for i := range n {
		if _, err := r.t.CancelTimer("t" + strconv.Itoa(i)); err != nil {
			r.note("cancel", err)
		}
	}
}

func (r *report) requests() {
	for _, deadline := range []int64{0, -1, math.MinInt64} {
		r.note("deadline "+strconv.FormatInt(deadline, 10), r.t.Request(r.t.Self(), nil, deadline, 1))
	}
	r.note("large", r.t.Request(r.t.Self(), make([]byte, mib+1), 1000, 1))
	var err error
	n := 0
	for ; err == nil && n < 2000; n++ {
		err = r.t.Request(r.t.Self(), nil, 1_000_000_000, math.MinInt64)
	}
	r.note("request "+strconv.Itoa(n), err)
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

func second[T any](_ T, err error) error { return err }
