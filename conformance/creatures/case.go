package creatures

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/conformance/stage"
	"github.com/seed47132306/terrarium/internal/plainly"
	"github.com/seed47132306/terrarium/operations"
)

// Case is a sequence of deliveries to a creature with the expected effects, from a file
// of its author.
type Case struct {
	Name   string            `yaml:"case"`
	Config map[string]any    `yaml:"config"`
	Listen []string          `yaml:"listen"` // aliases; by default those of the manifest
	Send   []string          `yaml:"send"`   // the same
	Peers  []string          `yaml:"peers"`
	State  map[string]string `yaml:"state"`
	// Privileged shows the creature the peers in its awareness document.
	Privileged bool `yaml:"privileged"`
	tools      `yaml:",inline"`
	Steps      []step `yaml:"-"`
	File       string `yaml:"-"`
	Line       int    `yaml:"-"`
}

// step is a delivery, or a step of the clock, and what must come of it.
type step struct {
	Message      *string           `yaml:"message"` // the payload; one of these says the kind
	Request      *string           `yaml:"request"`
	Output       *string           `yaml:"output"`
	Result       *string           `yaml:"result"`
	Timer        *string           `yaml:"timer"` // its name
	Start        *string           `yaml:"start"`
	GraphChanged *string           `yaml:"graph_changed"`
	Advance      *string           `yaml:"advance"` // a duration
	Payload      string            `yaml:"payload"` // of a timer
	On           string            `yaml:"on"`      // the alias of a message's channel
	From         string            `yaml:"from"`    // the name of the sender
	Headers      map[string]string `yaml:"headers"`
	Tag          int64             `yaml:"tag"`
	Code         string            `yaml:"code"`
	Within       string            `yaml:"within"` // of a request
	Expect       []string          `yaml:"expect"` // all effects, as terrarium call shows them
	Fails        string            `yaml:"fails"`  // the code with which the turn fails
	Peers        []string          `yaml:"peers"`  // from this step on
	Listen       []string          `yaml:"listen"` // the same
	tools        `yaml:",inline"`  // the same
	line         int
	d            stage.Delivery
}

var (
	caseFields = []string{"case", "config", "listen", "send", "peers", "state", "privileged", "tools", "refuses", "steps"}
	stepFields = []string{
		"message", "request", "output", "result", "timer", "start", "graph_changed", "advance", "payload", "on", "from", "headers", "tag", "code", "within", "expect", "fails",
		"peers", "listen", "tools", "refuses",
	}
	kindFields = stepFields[:8]
)

// maxCases is the size of the largest file of cases, in bytes.
const maxCases = 16 << 20

// ParseCases reads a file of cases in YAML. All mistakes are reported at once, each with
// the file and the line.
func ParseCases(file string, text []byte) ([]*Case, error) {
	if len(text) > maxCases {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxCases)
	}
	p := &parser{file: file, names: map[string]bool{}}
	var top, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	switch err := dec.Decode(&top); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s:1: the file is empty: write a list of cases", file)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:%d: the file has a second document: write one list of cases", file, max(second.Line, 1))
	}
	list := top.Content[0]
	if list.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%s:%d: write a list of cases, each beginning with - case: NAME", file, list.Line)
	}
	var out []*Case
	for _, n := range list.Content {
		out = append(out, p.readCase(n))
	}
	return out, errors.Join(p.wrong...)
}

// parser collects the mistakes of a file.
type parser struct {
	file  string
	names map[string]bool
	wrong []error
}

func (p *parser) fail(line int, format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Errorf("%s:%d: %s", p.file, line, fmt.Sprintf(format, args...)))
}

// fields returns the values of a mapping by name, and reports unknown names.
func (p *parser) fields(n *yaml.Node, known []string) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		p.fail(n.Line, "expected a mapping with %s", strings.Join(known, ", "))
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		switch {
		case !slices.Contains(known, name.Value):
			p.fail(name.Line, "there is no %q here: use %s", name.Value, strings.Join(known, ", "))
		case out[name.Value] != nil:
			p.fail(name.Line, "%q appears twice", name.Value)
		default:
			out[name.Value] = n.Content[i+1]
		}
	}
	return out
}

// decode reads each value by itself, so that all mistakes are found.
func (p *parser) decode(fields map[string]*yaml.Node, names []string, into any) {
	for _, name := range names {
		n := fields[name]
		if n == nil {
			continue
		}
		one := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: n.Line}, n}}
		var types *yaml.TypeError
		if err := one.Decode(into); errors.As(err, &types) {
			_, text, _ := strings.Cut(types.Errors[0], ": ")
			p.fail(n.Line, "%s: %s", name, plainly.YAML(errors.New(text)))
		} else if err != nil {
			p.fail(n.Line, "%s: %v", name, err)
		}
	}
}

func (p *parser) readCase(n *yaml.Node) *Case {
	c := &Case{File: p.file, Line: n.Line}
	fields := p.fields(n, caseFields)
	p.decode(fields, caseFields[:len(caseFields)-1], c)
	p.checkTools(&c.tools, fields)
	switch {
	case c.Name == "" && n.Kind == yaml.MappingNode:
		p.fail(n.Line, "the case has no name: begin it with case: NAME")
	case p.names[c.Name]:
		p.fail(n.Line, "two cases are called %q", c.Name)
	}
	p.names[c.Name] = true
	steps := fields["steps"]
	if steps == nil || steps.Kind != yaml.SequenceNode || len(steps.Content) == 0 {
		if n.Kind == yaml.MappingNode {
			p.fail(n.Line, "the case has no steps: add a list of deliveries")
		}
		return c
	}
	for _, s := range steps.Content {
		c.Steps = append(c.Steps, p.readStep(s))
	}
	return c
}

func (p *parser) readStep(n *yaml.Node) (s step) {
	s.line = n.Line
	fields := p.fields(n, stepFields)
	if len(fields) == 0 {
		return s
	}
	p.decode(fields, stepFields, &s)
	var kinds []string
	for _, name := range kindFields {
		if fields[name] != nil {
			kinds = append(kinds, name)
		}
	}
	if len(kinds) != 1 {
		p.fail(n.Line, "a step needs one of %s; this one has %d of them", strings.Join(kindFields, ", "), len(kinds))
		return s
	}
	if _, ok := abi.ParseCode(s.Fails); s.Fails != "" && !ok {
		p.fail(fields["fails"].Line, "fails: there is no code %q", s.Fails)
	}
	p.checkTools(&s.tools, fields)
	text := func(v *string) string {
		if v == nil {
			return ""
		}
		return *v
	}
	d := &s.d
	d.Alias, d.Headers, d.Tag, d.Code, d.Deadline = s.On, s.Headers, s.Tag, s.Code, s.Within
	switch kinds[0] {
	case "advance":
		d.Advance = text(s.Advance)
	case "timer":
		d.Kind, d.Name, d.Payload = stage.TimerFired, text(s.Timer), operations.Payload(s.Payload)
	default:
		d.Kind = stage.KindName(kinds[0])
		var payload *string
		for _, v := range []*string{s.Message, s.Request, s.Output, s.Result, s.Start, s.GraphChanged} {
			if v != nil {
				payload = v
			}
		}
		d.Payload = operations.Payload(text(payload))
	}
	d.Sender, d.Peers, d.Listen = s.From, s.Peers, s.Listen
	if d.Advance == "" && len(d.Payload) == 0 {
		d.Payload = nil
	}
	if err := d.Check(); err != nil {
		p.fail(n.Line, "%s", err)
	}
	return s
}

// run hands out the deliveries of the case warm and fresh, and returns what is wrong.
func (c *Case) run(ctx context.Context, b *bench) ([]string, error) {
	config := b.config
	if c.Config != nil {
		text, err := json.Marshal(c.Config)
		if err != nil {
			return []string{"config: " + err.Error()}, nil
		}
		config = string(text)
	}
	for _, fresh := range []bool{false, true} {
		script := &toolScript{c.tools}
		creature, err := b.creature(config, func(o *stage.Options) {
			o.Fresh, o.Peers, o.Privileged = fresh, c.Peers, c.Privileged
			o.Tools, o.Tool = c.tools.names(), script.call
			if c.Send != nil {
				o.Send = c.Send
			}
			if c.Listen != nil {
				o.Listen = c.Listen
			}
		})
		if err != nil {
			return []string{err.Error()}, nil
		}
		for key, value := range c.State {
			creature.Write(key, []byte(value), false)
		}
		wrong, err := c.perform(ctx, creature, script)
		creature.Close(ctx)
		if err != nil || wrong == "" {
			if err != nil {
				return nil, err
			}
			continue
		}
		how := "with one instance"
		if fresh {
			how = "with a fresh instance for every turn"
		}
		return []string{how + ", " + wrong}, nil
	}
	return nil, nil
}

func (c *Case) perform(ctx context.Context, creature *stage.Creature, script *toolScript) (string, error) {
	for i := range c.Steps {
		s := &c.Steps[i]
		script.change(&s.tools)
		d := s.d
		d.Tools = script.now.names()
		records, err := creature.Perform(ctx, []stage.Delivery{d})
		if errors.Is(err, stage.ErrManyTimers) || errors.Is(err, stage.ErrManyStopped) {
			return "", &undecided{report.BoundReached, fmt.Sprintf("%s:%d: %v", c.File, s.line, err)}
		}
		if err != nil {
			return "", err
		}
		var lines []string
		status, why := abi.OK.String(), ""
		for _, r := range records {
			if s.d.Advance != "" {
				lines = append(lines, "timer "+r.Name)
			}
			for _, e := range r.Effects {
				lines = append(lines, e.String())
			}
			if r.Error != nil {
				status, why = r.Status, ": "+clip(r.Error.Message)
			}
		}
		want := s.Fails
		if want == "" {
			want = abi.OK.String()
		}
		if status != want {
			return fmt.Sprintf("%s:%d: the turn ends with %s instead of %s%s", c.File, s.line, status, want, why), nil
		}
		for n := range max(len(lines), len(s.Expect)) {
			if got, want := line(lines, n), line(s.Expect, n); got != want {
				return fmt.Sprintf("%s:%d: effect %d is %s instead of %s", c.File, s.line, n+1, clip(got), clip(want)), nil
			}
		}
	}
	return "", nil
}
