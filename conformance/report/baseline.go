package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/seed47132306/terrarium/internal/plainly"
)

// Baseline lists the failures that a tested project expects. It belongs to that project.
type Baseline struct {
	ExpectedFailures []Expectation `yaml:"expected_failures"`
}

// Expectation is an expected failure.
type Expectation struct {
	Check   string `yaml:"check"`
	Subject string `yaml:"subject"` // the module, where there are several
	Why     string `yaml:"reason"`
}

// maxBaseline is the size of the largest baseline, in bytes.
const maxBaseline = 1 << 20

// ParseBaseline reads a baseline. known reports whether a check exists. All mistakes are
// reported, each with its line.
func ParseBaseline(name string, text []byte, known func(check string) bool) (*Baseline, error) {
	if len(text) > maxBaseline {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxBaseline)
	}
	var lines struct {
		ExpectedFailures []yaml.Node `yaml:"expected_failures"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	switch err := dec.Decode(&lines); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s:1: the file is empty: write expected_failures: with a list", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %s", name, plainly.YAML(err))
	case !errors.Is(dec.Decode(new(yaml.Node)), io.EOF):
		return nil, fmt.Errorf("%s has a second document: write one list", name)
	}
	out := &Baseline{}
	var wrong []error
	for _, n := range lines.ExpectedFailures {
		var e Expectation
		err := n.Decode(&e)
		switch unknown := unknownKey(&n); {
		case err != nil:
			err = errors.New("the entry is not valid: give it check, subject and reason, each a string")
		case unknown != "":
			err = fmt.Errorf("%q is not a member of an entry; use check, subject and reason", unknown)
		case e.Why == "":
			err = fmt.Errorf("the entry for %q has no reason", e.Check)
		case !known(e.Check):
			err = fmt.Errorf("there is no check %q", e.Check)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: %w", name, n.Line, err))
		}
		out.ExpectedFailures = append(out.ExpectedFailures, e)
	}
	return out, errors.Join(wrong...)
}

// unknownKey returns a key of an entry that an expectation does not have; "" if there is
// none.
func unknownKey(entry *yaml.Node) string {
	for i := 0; i+1 < len(entry.Content) && entry.Kind == yaml.MappingNode; i += 2 {
		if key := entry.Content[i].Value; key != "check" && key != "subject" && key != "reason" {
			return key
		}
	}
	return ""
}

func (b *Baseline) list() []Expectation {
	if b == nil {
		return nil
	}
	return b.ExpectedFailures
}

func (e *Expectation) key() string {
	if e.Subject != "" {
		return e.Subject + " " + e.Check
	}
	return e.Check
}

// find returns the entry that a result belongs to.
func (b *Baseline) find(x *Result) *Expectation {
	for _, e := range b.list() {
		if e.Check == x.Check && (e.Subject == "" || e.Subject == x.Subject) {
			return &e
		}
	}
	return nil
}

func (b *Baseline) reason(x *Result) (string, bool) {
	if e := b.find(x); e != nil {
		return e.Why, true
	}
	return "", false
}

func (b *Baseline) key(x *Result) string { return b.find(x).key() }
