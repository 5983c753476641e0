package hosts

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed47132306/terrarium/abi"
)

//go:embed cases/*.yaml modules/*.wasm
var files embed.FS

// Case is one check of a host: a few steps, and the required result of each.
type Case struct {
	Check  string   `yaml:"check"`  // its name, unique in the suite
	About  string   `yaml:"about"`  // what it shows, as a sentence
	Proves []string `yaml:"proves"` // numbers of rules
	Needs  []string `yaml:"needs"`  // features without which it does not apply
	Load   *Load    `yaml:"load"`   // the creature subject; by default the probe
	Step   `yaml:",inline"`
	Steps  []Step `yaml:"steps"`
}

// Load describes a creature.
type Load struct {
	As     string            `yaml:"as"`     // its name; subject by default
	Module string            `yaml:"module"` // in modules; probe by default
	Config map[string]any    `yaml:"config"`
	Init   string            `yaml:"init"`   // scripts of the probe, by phase
	Handle string            `yaml:"handle"` //
	Stop   string            `yaml:"stop"`
	Send   []string          `yaml:"send"` // ALIAS or ALIAS=CHANNEL
	Listen []string          `yaml:"listen"`
	Grants []string          `yaml:"grants"` // clock, random
	Limits Limits            `yaml:"limits"`
	Lacks  []string          `yaml:"lacks"`
	Tools  []Tool            `yaml:"tools"`
	State  map[string]string `yaml:"state"`
	Fresh  bool              `yaml:"fresh"`
	// Returns is what creature_handle returns.
	Returns int32 `yaml:"returns"`
	init    *script
	handle  *script
	stop    *script
}

// Step is one request to the adapter, and its required result.
type Step struct {
	On      string   `yaml:"on"`      // the creature; subject by default
	Deliver *Deliver `yaml:"deliver"` // the default, if there are calls
	Load    *Load    `yaml:"and_load"`
	Send    *Deliver `yaml:"send"` // on a channel, from outside
	Advance *int64   `yaml:"advance"`
	Drop    bool     `yaml:"drop"`
	Stop    bool     `yaml:"stop"`
	Examine string   `yaml:"examine"` // a module

	Calls    string `yaml:"calls"`    // the script of the probe
	Returns  int32  `yaml:"returns"`  // what its function returns
	ByOutput bool   `yaml:"byoutput"` // it reports as output
	// ByStatus returns the result of the last call, made negative, instead of a report.
	ByStatus bool     `yaml:"bystatus"`
	Status   string   `yaml:"status"`  // ok by default; codes that are allowed, with | between
	Text     string   `yaml:"text"`    // a part of the text of the failure
	Effects  []string `yaml:"effects"` // all of them
	Logs     []string `yaml:"logs"`    // all of them but the report
	Turns    []string `yaml:"turns"`   // of advance: all of them
	// Instances is how many were made so far; 0: any number.
	Instances int      `yaml:"instances"`
	Problems  []string `yaml:"problems"` // parts of the texts of what is wrong with the module
	script    *script
}

// Deliver describes a delivery.
type Deliver struct {
	Kind     any               `yaml:"kind"` // a name or a number; message by default
	Alias    string            `yaml:"alias"`
	Channel  string            `yaml:"channel"`
	Payload  string            `yaml:"payload"`
	Headers  map[string]string `yaml:"headers"`
	Sender   string            `yaml:"sender"`
	Attempt  int               `yaml:"attempt"`
	Message  uint64            `yaml:"message"`
	Name     string            `yaml:"name"`
	Tag      int64             `yaml:"tag"`
	Code     string            `yaml:"code"`
	Deadline int64             `yaml:"deadline"`
	Wire     string            `yaml:"wire"`
}

const subject = "subject"

// Cases returns the cases of the suite, in order.
func Cases() ([]*Case, error) {
	names, err := fs.Glob(files, "cases/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*Case
	seen := map[string]bool{}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var list []*Case
		dec := yaml.NewDecoder(bytes.NewReader(text))
		dec.KnownFields(true)
		if err := dec.Decode(&list); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range list {
			if err := c.prepare(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, c.Check, err)
			}
			if seen[c.Check] {
				return nil, fmt.Errorf("%s: two checks are called %s", name, c.Check)
			}
			seen[c.Check] = true
			all = append(all, c)
		}
	}
	return all, nil
}

// prepare completes a case: it begins with the load of its subject, unless it only
// examines a module.
func (c *Case) prepare() error {
	if c.Check == "" || c.About == "" || len(c.Proves) == 0 {
		return fmt.Errorf("a case needs check, about and proves")
	}
	first := Step{Load: c.Load}
	if c.Load == nil {
		first.Load = &Load{}
	}
	if c.does() {
		c.Steps = append([]Step{c.Step}, c.Steps...)
	} else { // what is said of the case is about its load
		first.Status, first.Text, first.Logs = c.Step.Status, c.Step.Text, c.Step.Logs
	}
	if len(c.Steps) == 0 || c.Steps[0].Examine == "" {
		c.Steps = append([]Step{first}, c.Steps...)
	}
	for i := range c.Steps {
		if err := c.Steps[i].prepare(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// does reports whether the step asks for something.
func (s *Step) does() bool {
	return s.Deliver != nil || s.Load != nil || s.Send != nil || s.Advance != nil || s.Drop || s.Stop || s.Examine != "" || s.Calls != ""
}

func (s *Step) prepare() (err error) {
	if s.On == "" {
		s.On = subject
	}
	if s.Status == "" {
		s.Status = abi.OK.String()
	}
	if s.Load != nil {
		if s.Load.As == "" {
			s.Load.As = subject
		}
		s.On = s.Load.As
		for _, x := range []struct {
			text string
			to   **script
		}{{s.Load.Init, &s.Load.init}, {s.Load.Handle, &s.Load.handle}, {s.Load.Stop, &s.Load.stop}} {
			if *x.to, err = parseScript(x.text); err != nil {
				return err
			}
		}
	}
	if s.Calls != "" && s.Deliver == nil && s.Send == nil {
		s.Deliver = &Deliver{}
	}
	if s.script, err = parseScript(s.Calls); err != nil {
		return err
	}
	s.script.byOutput, s.script.byStatus = s.ByOutput, s.ByStatus
	return nil
}

// module returns the bytes of a module of the suite, or of one that is derived from it:
// "NAME +manifest JSON…" adds custom sections, "NAME -N" cuts bytes off, and "bytes TEXT"
// is no module at all.
func module(name string) ([]byte, error) {
	name, change, _ := strings.Cut(cmp.Or(name, "probe"), " ")
	if name == "bytes" {
		return []byte(change), nil
	}
	wasm, err := files.ReadFile("modules/" + name + ".wasm")
	if n, cerr := strconv.Atoi(change); cerr == nil && n < 0 && len(wasm)+n > 0 {
		return wasm[:len(wasm)+n], err
	}
	for _, manifest := range strings.Split(change, "+manifest ")[1:] {
		body := append(binary.AppendUvarint(nil, uint64(len(abi.ManifestSection))), abi.ManifestSection...)
		body = append(body, strings.TrimSpace(manifest)...)
		wasm = append(binary.AppendUvarint(append(wasm, 0), uint64(len(body))), body...)
	}
	return wasm, err
}

// request fills in the request of a load.
func (l *Load) request(r *Request) (err error) {
	r.Op, r.Creature, r.Limits, r.Lacks, r.Tools, r.Fresh = OpLoad, l.As, nil, l.Lacks, l.Tools, l.Fresh
	if len(l.Limits) > 0 {
		r.Limits = &l.Limits
	}
	if r.Module, err = module(l.Module); err != nil {
		return err
	}
	config := map[string]any{}
	for name, v := range l.Config {
		config[name] = v
	}
	for name, s := range map[string]*script{"init": l.init, "handle": l.handle, "stop": l.stop} {
		status := int32(0)
		if name == "handle" {
			status = l.Returns
		}
		if len(s.calls) > 0 {
			config[name] = hex.EncodeToString(s.encode(status))
		}
	}
	if len(config) > 0 {
		if r.Config, err = json.Marshal(config); err != nil {
			return err
		}
	}
	r.Send, r.Listen = edges(l.Send), edges(l.Listen)
	r.Clock, r.Random = slices.Contains(l.Grants, "clock"), slices.Contains(l.Grants, "random")
	for key, value := range l.State {
		if r.State == nil {
			r.State = map[string][]byte{}
		}
		r.State[key] = []byte(value)
	}
	return nil
}

func edges(list []string) (out []Edge) {
	for _, text := range list {
		alias, channel, ok := strings.Cut(text, "=")
		if !ok {
			channel = alias
		}
		out = append(out, Edge{Alias: alias, Channel: channel})
	}
	return out
}

// request fills in the request of a delivery.
func (d *Deliver) request(r *Request, s *Step) error {
	switch kind := d.Kind.(type) {
	case nil:
		r.Kind = int32(abi.KindMessage)
	case int:
		r.Kind = int32(kind)
	default:
		at := slices.IndexFunc(abi.Kinds, func(k abi.KindInfo) bool { return k.Name == kind })
		if at < 0 {
			return fmt.Errorf("there is no kind %v", kind)
		}
		r.Kind = int32(abi.Kinds[at].Kind)
	}
	r.Alias, r.Channel, r.Payload, r.Sender, r.Attempt, r.Message = d.Alias, d.Channel, []byte(d.Payload), d.Sender, d.Attempt, d.Message
	r.Name, r.Tag, r.Code, r.Deadline, r.Wire = d.Name, d.Tag, d.Code, d.Deadline, d.Wire
	for name, value := range d.Headers {
		r.Headers = append(r.Headers, [2]string{name, value})
	}
	slices.SortFunc(r.Headers, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	if s.Calls != "" {
		r.Payload = s.script.encode(s.Returns)
	} else if s.Returns != 0 {
		r.Payload = (&script{}).encode(s.Returns)
	}
	return nil
}
