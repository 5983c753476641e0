// Package veil removes the sensitive values of a creature's configuration from
// texts, such as a guest's log lines and failure messages.
//
// A veil is made once for a configuration and never changes. A nil veil hides
// nothing and returns every text and error unchanged. Values of less than four
// bytes are not hidden: they occur everywhere.
package veil

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// shortestSecret is the minimum length in bytes of a sensitive value to hide:
// shorter ones occur everywhere.
const shortestSecret = 4

// Veil hides the sensitive values of one configuration. Its methods may be called from any
// goroutine.
type Veil struct {
	values  *strings.Replacer
	longest int // of the values, in bytes
}

// Of returns a veil for the sensitive values of a configuration: each string
// and number in a sensitive attribute, the lines of strings, and strings in
// their JSON encoding. It returns nil if there are none.
func Of(s *deploy.CreatureSpec) *Veil {
	var all map[string]json.RawMessage
	if len(s.Secret) == 0 || json.Unmarshal(s.Config, &all) != nil {
		return nil
	}
	var found []string
	for _, name := range s.Secret {
		d := json.NewDecoder(bytes.NewReader(all[name]))
		d.UseNumber()
		var v any
		if d.Decode(&v) == nil {
			found = appendTexts(found, v)
		}
	}
	found = slices.DeleteFunc(found, func(text string) bool { return len(text) < shortestSecret })
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, text := range slices.Compact(found) {
		pairs = append(pairs, text, deploy.HiddenValue)
	}
	return &Veil{strings.NewReplacer(pairs...), len(found[0])} // if several match, the first is replaced: the longest
}

func appendTexts(out []string, v any) []string {
	switch v := v.(type) {
	case string:
		quoted := strings.Trim(string(journal.JSON(v)), `"`)
		out = append(append(out, v, quoted, strings.TrimSpace(v)), strings.Split(v, "\n")...)
	case json.Number:
		out = append(out, v.String())
	case []any:
		for _, e := range v {
			out = appendTexts(out, e)
		}
	case map[string]any:
		for _, e := range v {
			out = appendTexts(out, e)
		}
	}
	return out
}

// Longest returns the length in bytes of the longest value that the veil hides, or 0.
func (v *Veil) Longest() int {
	if v == nil {
		return 0
	}
	return v.longest
}

// Text returns a text without the sensitive values.
func (v *Veil) Text(text string) string {
	if v == nil {
		return text
	}
	return v.values.Replace(text)
}

// Error returns an error without the sensitive values. A guest's failure
// message is logged, sent to the root, and printed.
func (v *Veil) Error(err error) error {
	if err == nil || v == nil {
		return err
	}
	text := err.Error()
	if v.values.Replace(text) == text {
		return err
	}
	out := &abi.Error{Code: abi.CodeOf(err), Message: text}
	var known *abi.Error
	if errors.As(err, &known) {
		c := *known
		out = &c
		out.Err = nil // the cause may contain the value too
	}
	out.Message, out.Remedy = v.values.Replace(out.Message), v.values.Replace(out.Remedy)
	return out
}
