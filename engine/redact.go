package engine

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

// shortestSecret is how many bytes a value of a sensitive attribute has at least
// for it to be looked for in what a guest says: shorter ones occur everywhere.
const shortestSecret = 4

// veilOf replaces the sensitive values of a configuration in texts: each text and
// number in a sensitive attribute, the lines of texts, and texts as JSON writes them.
// Nil if nothing is sensitive.
func veilOf(s *deploy.CreatureSpec) *strings.Replacer {
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
	return strings.NewReplacer(pairs...) // of several that fit, the first is replaced: the longest
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

// veiled is a text without the sensitive values of the creature's configuration.
func (s *settings) veiled(text string) string {
	if s.veil == nil {
		return text
	}
	return s.veil.Replace(text)
}

// veiledError is an error without them. What a guest says of a failure is logged,
// sent to the root, and printed.
func (s *settings) veiledError(err error) error {
	if err == nil || s.veil == nil {
		return err
	}
	text := err.Error()
	if s.veil.Replace(text) == text {
		return err
	}
	out := &abi.Error{Code: abi.CodeOf(err), Message: text}
	var known *abi.Error
	if errors.As(err, &known) {
		c := *known
		out = &c
		out.Err = nil // which may say it too
	}
	out.Message, out.Remedy = s.veil.Replace(out.Message), s.veil.Replace(out.Remedy)
	return out
}
