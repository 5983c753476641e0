// Package misfit describes why a JSON schema rejects a value.
package misfit

import "strings"

// Of extracts from an error of google/jsonschema-go which value the schema
// rejects, as names separated by slashes, or "" for the complete value, and
// the reason, without the path through the schema.
func Of(err error) (where, text string) {
	text = err.Error()
	for {
		rest, ok := strings.CutPrefix(text, "validating ")
		at, what, found := strings.Cut(rest, ": ")
		if !ok || !found {
			break
		}
		where, text = at, what
	}
	text = strings.Replace(text, "<invalid reflect.Value>", "null", 1)
	if where == "root" {
		return "", text
	}
	return strings.ReplaceAll(strings.TrimPrefix(where, "/properties/"), "/properties/", "/"), text
}
