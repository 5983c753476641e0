package creatures

import (
	"encoding/json"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/seed47132306/terrarium/abi"
)

// tools says what group tools answer in a case.
type tools struct {
	// Tools maps the name of a tool to its result: a text as it is, or any other value as
	// JSON. Refuses maps the name of a tool to the code with which it is refused.
	Tools   map[string]any    `yaml:"tools"`
	Refuses map[string]string `yaml:"refuses"`
}

// names returns the names of the tools, in order.
func (t *tools) names() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range t.Tools {
			if !yield(name) {
				return
			}
		}
		for name := range t.Refuses {
			if _, twice := t.Tools[name]; !twice && !yield(name) {
				return
			}
		}
	})
}

// checkTools reports answers that no tool can give.
func (p *parser) checkTools(t *tools, fields map[string]*yaml.Node) {
	for _, name := range slices.Sorted(maps.Keys(t.Refuses)) {
		if code, ok := abi.ParseCode(t.Refuses[name]); !ok || code == abi.OK {
			p.fail(fields["refuses"].Line, "refuses: there is no error with the code %q", t.Refuses[name])
		}
		if _, twice := t.Tools[name]; twice {
			p.fail(fields["refuses"].Line, "refuses: %s has a result in tools", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Tools)) {
		if _, err := resultOf(t.Tools[name]); err != nil {
			p.fail(fields["tools"].Line, "tools: %s: %v", name, err)
		}
	}
}

func resultOf(v any) ([]byte, error) {
	if text, ok := v.(string); ok {
		return []byte(text), nil
	}
	return json.Marshal(v)
}

// toolScript answers the calls of group tools.
type toolScript struct{ now tools }

// change replaces the answers of the tools that a step names.
func (s *toolScript) change(to *tools) {
	if to.Tools == nil && to.Refuses == nil {
		return
	}
	next := tools{map[string]any{}, map[string]string{}}
	maps.Copy(next.Tools, s.now.Tools)
	maps.Copy(next.Refuses, s.now.Refuses)
	for name, v := range to.Tools {
		delete(next.Refuses, name)
		next.Tools[name] = v
	}
	for name, code := range to.Refuses {
		delete(next.Tools, name)
		next.Refuses[name] = code
	}
	s.now = next
}

// call answers a call. Without any answers in its case, a creature is not privileged.
func (s *toolScript) call(name, _ []byte) ([]byte, *abi.Error) {
	if v, ok := s.now.Tools[string(name)]; ok {
		result, _ := resultOf(v) // it was tried when it was read
		return result, nil
	}
	if code, ok := abi.ParseCode(s.now.Refuses[string(name)]); ok {
		return nil, &abi.Error{Code: code, Message: "the case refuses the tool " + string(name)}
	}
	if len(s.now.Tools)+len(s.now.Refuses) == 0 {
		return nil, &abi.Error{Code: abi.NotPrivileged, Message: "the case answers no group tools: add tools or refuses to it"}
	}
	return nil, &abi.Error{Code: abi.NotFound, Message: "the case has no answer for the tool " + string(name)}
}
