package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/stage"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/plainly"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/replay"
)

// callFlags holds the flags of the call command.
type callFlags struct {
	one         stage.Delivery
	payload     string
	payloadFile string
	headers     []string
	request     bool
	file        string
	advance     string
	noStart     bool

	config string
	state  []string
	send   []string
	peers  []string
	fresh  bool
	cache  cacheFlags
	format string
}

var errTurnFailed = errors.New("a delivery failed")

func callCommand(s streams) *cobra.Command {
	f := &callFlags{}
	cmd := &cobra.Command{
		Use:   "call MODULE",
		Short: "Deliver messages to a creature and show what it does",
		Long: `call creates a creature from a module, outside of any graph. It delivers start, and then the
deliveries that the flags or a file describe. For each delivery it prints the effects that
the creature requests (messages, output, state, timers and log lines) and the fuel that it
used. Nothing is kept, and the same call always gives the same result: the clock begins at
2026-01-01 00:00 UTC, and only --advance moves it.

MODULE is a file, builtin:NAME, or - for standard input. The creature may send on the
channels of its manifest and of --send.

--file reads a JSON array of deliveries, - from standard input. Each has a kind (message
by default) and, as needed, alias, payload, headers, sender, name (of a timer), tag and
code (of a result), deadline (of a request) and wire (of an output). With peers or listen,
the creature has these peers or listens on these channels from then on. A step
{"advance": "5s"} moves the clock and fires the timers that come due.

Exit codes: 0 every delivery was handled; 1 one failed; 2 the command line is not valid.`,
		Example: `  terrarium call builtin:echo --payload hello --send out
  terrarium call tally.wasm --alias in --payload "a x" --config '{"key": "field:2"}' --state total=4
  terrarium call ticker.wasm --advance 10s
  terrarium call tally.wasm --file deliveries.json -o json`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, s, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVar((*string)(&f.one.Kind), "kind", "", "`KIND` of the delivery: "+stage.KindNames()+" (default message)")
	fs.StringVar(&f.payload, "payload", "", "payload of the delivery as `TEXT`")
	fs.StringVar(&f.payloadFile, "payload-file", "", "read the payload of the delivery from `FILE`")
	fs.StringVar(&f.one.Alias, "alias", "", "`NAME` of the channel on which the message comes, as the creature knows it; without it the message comes directly")
	fs.StringArrayVar(&f.headers, "header", nil, "add a header to the delivery, as `NAME=VALUE`; may be repeated")
	fs.StringVar(&f.one.Sender, "sender", "", "`NAME` of the creature that sent the delivery")
	fs.StringVar(&f.one.Name, "name", "", "`NAME` of the timer, for --kind timer")
	fs.Int64Var(&f.one.Tag, "tag", 0, "`NUMBER` of the request that was answered, for --kind result")
	fs.BoolVar(&f.request, "request", false, "the same as --kind request")
	fs.StringVar(&f.file, "file", "", "deliver the JSON array of deliveries in `FILE`")
	fs.StringVar(&f.advance, "advance", "", "after the delivery, move the clock by `DURATION`, which fires timers")
	fs.BoolVar(&f.noStart, "no-start", false, "do not deliver start first, as for a creature that has run before")
	fs.StringVar(&f.config, "config", "", "configuration of the creature: a `FILE` with a JSON object, or the object itself")
	fs.StringArrayVar(&f.state, "state", nil, "a value of the state at the beginning, as `KEY=VALUE`; may be repeated")
	fs.StringArrayVar(&f.send, "send", nil, "give the creature a channel that it calls `NAME` and may send on; may be repeated")
	fs.StringArrayVar(&f.peers, "peer", nil, "`NAME` of another creature, to which this one can send; may be repeated")
	fs.BoolVar(&f.fresh, "fresh-instances", false, "run every turn on a new instance, to find creatures that keep state in linear memory")
	f.cache.add(fs)
	formatFlag(cmd, &f.format)
	return cmd
}

func (f *callFlags) run(cmd *cobra.Command, s streams, name string) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if name == standardInput && (f.file == standardInput || f.payloadFile == standardInput) {
		return usage("only one of MODULE, --file and --payload-file can be standard input")
	}
	list, err := f.deliveries(cmd, s)
	if err != nil {
		return failWith(exitUsage, err)
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	wasm, err := moduleBytes(ctx, s, name)
	if err != nil {
		return failWith(exitUsage, err)
	}
	out, err := f.call(ctx, s, wasm, list)
	switch {
	case err != nil && ctx.Err() != nil:
		return interrupted(ctx)
	case err != nil:
		return err
	}
	return out.print(s, f.format)
}

// deliveries returns what the flags say.
func (f *callFlags) deliveries(cmd *cobra.Command, s streams) ([]stage.Delivery, error) {
	var list []stage.Delivery
	given := slices.DeleteFunc([]string{"kind", "payload", "payload-file", "alias", "header", "sender", "name", "tag", "request"},
		func(name string) bool { return !cmd.Flags().Changed(name) })
	switch {
	case f.file != "" && len(given) > 0:
		return nil, fmt.Errorf("--%s and --file exclude each other: write it into the file", given[0])
	case f.file != "":
		more, err := readDeliveries(s, f.file)
		if err != nil {
			return nil, err
		}
		list = more
	case len(given) > 0:
		if err := f.fillOne(s); err != nil {
			return nil, err
		}
		list = []stage.Delivery{f.one}
	}
	if f.advance != "" {
		step := stage.Delivery{Advance: f.advance}
		if err := step.Check(); err != nil {
			return nil, fmt.Errorf("--%w", err)
		}
		list = append(list, step)
	}
	const start = stage.Start
	if !f.noStart && (len(list) == 0 || list[0].Kind != start) {
		list = slices.Insert(list, 0, stage.Delivery{Kind: start})
	}
	if len(list) == 0 {
		return nil, errors.New("with --no-start there is nothing to deliver: add --payload, --kind, --file or --advance")
	}
	return list, nil
}

// fillOne completes the delivery that the flags describe.
func (f *callFlags) fillOne(s streams) error {
	if f.request {
		if f.one.Kind != "" && f.one.Kind != stage.Request {
			return fmt.Errorf("--request and --kind %s exclude each other", f.one.Kind)
		}
		f.one.Kind = stage.Request
	}
	f.one.Payload = []byte(f.payload)
	if f.payloadFile != "" {
		if f.payload != "" {
			return errors.New("--payload and --payload-file exclude each other")
		}
		payload, err := fileOrInput(s, f.payloadFile)
		if err != nil {
			return err
		}
		f.one.Payload = payload
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			return fmt.Errorf("--header %s: use NAME=VALUE", h)
		}
		if f.one.Headers == nil {
			f.one.Headers = map[string]string{}
		}
		f.one.Headers[name] = value
	}
	return f.one.Check()
}

// fileOrInput reads a file, or standard input, of at most the largest size of a delivery's
// file.
func fileOrInput(s streams, path string) ([]byte, error) {
	in := io.Reader(s.in)
	if path != standardInput {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxDeliveries+1))
	if err == nil && len(text) > maxDeliveries {
		err = fmt.Errorf("%s has more than %s", path, size(maxDeliveries))
	}
	return text, err
}

// configuration returns the JSON of --config.
func (f *callFlags) configuration(s streams) (string, error) {
	text := f.config
	if text == "" {
		return "", nil
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		b, err := fileOrInput(s, text)
		if err != nil {
			return "", fmt.Errorf("--config: %w", err)
		}
		text = string(bytes.TrimSpace(b))
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return "", fmt.Errorf("--config is not a JSON object: %w; pass one such as {\"key\": \"value\"}", plainly.JSON([]byte(text), err))
	}
	return text, nil
}

// call compiles the module and hands out the deliveries.
func (f *callFlags) call(ctx context.Context, s streams, wasm []byte, list []stage.Delivery) (out *callReport, err error) {
	o := host.Options{Compiler: compiler(), Translations: translations()}
	if o.CacheDir, o.CacheOptional, err = f.cache.resolve(); err != nil {
		return nil, err
	}
	h, err := host.New(ctx, o)
	if err != nil {
		return nil, failWith(exitFailed, err)
	}
	defer func() { err = errors.Join(err, failWith(exitFailed, h.Close(context.WithoutCancel(ctx)))) }()
	module, err := h.Compile(ctx, wasm)
	if err != nil {
		return nil, failWith(exitFailed, err)
	}
	defer func() { err = errors.Join(err, failWith(exitFailed, module.Close(context.WithoutCancel(ctx)))) }()
	x, err := f.stage(s, module)
	if err != nil {
		return nil, failWith(exitUsage, err)
	}
	defer x.Close(context.WithoutCancel(ctx))
	records, err := x.Perform(ctx, list)
	if errors.Is(err, stage.ErrManyTimers) || errors.Is(err, stage.ErrManyStopped) {
		err = failWith(exitUsage, err)
	}
	if err != nil {
		return nil, err
	}
	return &callReport{SHA256: module.Info().SHA256, Deliveries: records, State: x.State(), Timers: x.Waiting()}, nil
}

// stage makes the creature with its configuration and state.
func (f *callFlags) stage(s streams, module abi.Module) (*stage.Creature, error) {
	config, err := f.configuration(s)
	if err != nil {
		return nil, err
	}
	o := stage.Options{Config: config, Send: slices.Clone(f.send), Peers: f.peers, Fresh: f.fresh}
	if m := module.Info().Manifest; m != nil {
		for _, c := range m.Send {
			o.Send = append(o.Send, c.Alias)
		}
		for _, c := range m.Listen {
			o.Listen = append(o.Listen, c.Alias)
		}
	}
	x, err := stage.New(module, o)
	if err != nil {
		return nil, err
	}
	for _, pair := range f.state {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--state %s: use KEY=VALUE", pair)
		}
		x.Write(key, []byte(value), false)
	}
	return x, nil
}

// callReport is what call prints.
type callReport struct {
	SHA256     string                        `json:"sha256"` // of the module
	Deliveries []*stage.Record               `json:"deliveries"`
	State      map[string]operations.Payload `json:"state"`  // at the end
	Timers     []*stage.Timer                `json:"timers"` // that are set at the end
}

func (c *callReport) print(s streams, format string) error {
	var err error
	if format == "json" {
		err = printJSON(s, c)
	} else {
		_, err = io.WriteString(s.text(), c.text())
		err = failWith(exitFailed, err)
	}
	failed := slices.ContainsFunc(c.Deliveries, func(r *stage.Record) bool { return r.Error != nil })
	if err == nil && failed {
		return &exit{code: exitFailed, err: errTurnFailed, shown: true}
	}
	return err
}

func (c *callReport) text() string {
	var b strings.Builder
	for _, r := range c.Deliveries {
		b.WriteString(recordTitle(r) + "\n")
		for _, e := range r.Effects {
			b.WriteString("  " + oneLine(e.String()) + "\n")
		}
		if r.Error == nil {
			fmt.Fprintf(&b, "  ok, %s fuel\n", humanize.Comma(r.Fuel))
			continue
		}
		fmt.Fprintf(&b, "  failed, %s fuel: %s\n", humanize.Comma(r.Fuel), strings.ReplaceAll(r.Error.Message, "\n", "\n    "))
		if r.Error.Remedy != "" {
			fmt.Fprintf(&b, "    Remedy: %s\n", oneLine(r.Error.Remedy))
		}
	}
	for _, t := range c.Timers {
		every := ""
		if t.EveryMS > 0 {
			every = fmt.Sprintf(", every %v", time.Duration(t.EveryMS)*time.Millisecond)
		}
		fmt.Fprintf(&b, "The timer %s would fire in %v%s.\n", oneLine(t.Name), time.Duration(t.InMS)*time.Millisecond, every)
	}
	return b.String()
}

// recordTitle describes a delivery on one line.
func recordTitle(r *stage.Record) string {
	out := string(r.Kind)
	switch {
	case r.Alias != "":
		out += " on " + r.Alias
	case r.Name != "":
		out += " " + r.Name
	}
	if len(r.Payload) > 0 {
		out += " " + replay.Text(r.Payload).String()
	}
	if r.AtMS > 0 {
		out += fmt.Sprintf(" at %v", time.Duration(r.AtMS)*time.Millisecond)
	}
	return oneLine(out)
}

// maxDeliveries is the size of the largest file of deliveries, in bytes.
const maxDeliveries = 64 << 20

// readDeliveries reads a file of deliveries: a JSON array.
func readDeliveries(s streams, path string) ([]stage.Delivery, error) {
	text, err := fileOrInput(s, path)
	if err != nil {
		return nil, err
	}
	var list []stage.Delivery
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s is not a JSON array of deliveries: %w", path, plainly.JSON(text, err))
	}
	if dec.More() {
		return nil, fmt.Errorf("%s has something after the array of deliveries", path)
	}
	for i := range list {
		if err := list[i].Check(); err != nil {
			return nil, fmt.Errorf("%s: delivery %d: %w", path, i+1, err)
		}
	}
	return list, nil
}
