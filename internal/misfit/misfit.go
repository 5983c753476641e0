// Package misfit words what a JSON schema objects to.
package misfit

import "strings"

// Of says, of an error of google/jsonschema-go, to which value the schema objects, with
// slashes between the names and empty for the whole, and to what about it, without the
// way there through the schema.
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
