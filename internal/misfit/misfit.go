// Package misfit describes why a JSON schema rejects a value.
package misfit

import (
	"math/big"
	"regexp"
	"strings"
)

// Of extracts from an error of google/jsonschema-go which value the schema
// rejects, as names separated by slashes, or "" for the complete value, and
// the reason, without the path through the schema. The usual reasons are sentences
// about the value.
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
	text = reason(strings.Replace(text, "<invalid reflect.Value>", "null", 1))
	if where == "root" {
		return "", text
	}
	return strings.ReplaceAll(strings.TrimPrefix(where, "/properties/"), "/properties/", "/"), text
}

var (
	wrongType   = regexp.MustCompile(`(?s)^type: .* has type "([a-z]+)", want "(\w+)"$`)
	outOfBounds = regexp.MustCompile(`^(minimum|maximum): (-?[0-9]+)/([0-9]+) is (?:less|greater) than (-?[0-9.]+)$`)
	wrongText   = regexp.MustCompile(`(?s)^pattern: (".*") does not match regular expression (".*")$`)
	wrongLength = regexp.MustCompile(`(?s)^(?:min|max)Length: ".*" contains ([0-9]+) Unicode code points, ((?:fewer|more) than [0-9]+)$`)
	missing     = regexp.MustCompile(`^required: missing properties: \[(".*")\]$`)
	surplus     = regexp.MustCompile(`(?s)^unexpected additional properties \[(".*")\]$`)
	noChoice    = regexp.MustCompile(`(?s)^enum: (.*) does not equal any of: \[(.*)\]$`)
)

// reason says in the words of a user what the keyword of a schema found.
func reason(text string) string {
	if m := wrongType.FindStringSubmatch(text); m != nil {
		return "it must be of type " + m[2] + ", but is of type " + m[1]
	}
	if m := outOfBounds.FindStringSubmatch(text); m != nil {
		value, isNumber := new(big.Rat).SetString(m[2] + "/" + m[3])
		bound, isBound := new(big.Rat).SetString(m[4])
		if !isNumber || !isBound {
			return text
		}
		side := "at least "
		if m[1] == "maximum" {
			side = "at most "
		}
		return "it must be " + side + decimal(bound) + ", but is " + decimal(value)
	}
	if m := wrongText.FindStringSubmatch(text); m != nil {
		return m[1] + " does not match the pattern " + m[2]
	}
	if m := noChoice.FindStringSubmatch(text); m != nil {
		return m[1] + " is not one of: " + m[2]
	}
	if m := wrongLength.FindStringSubmatch(text); m != nil {
		return "it has " + m[1] + " characters, " + m[2]
	}
	if m := missing.FindStringSubmatch(text); m != nil {
		return list(m[1]) + " missing"
	}
	if m := surplus.FindStringSubmatch(text); m != nil {
		return list(m[1]) + " not allowed"
	}
	return text
}

// list begins a sentence about quoted names that have spaces between them.
func list(names string) string {
	if strings.Contains(names, `" "`) {
		return strings.ReplaceAll(names, `" "`, `", "`) + " are"
	}
	return names + " is"
}

// decimal writes a number with as many digits as it needs, at most six of them after
// the point.
func decimal(n *big.Rat) string {
	if n.IsInt() {
		return n.Num().String()
	}
	return strings.TrimRight(n.FloatString(6), "0")
}
