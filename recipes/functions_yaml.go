package recipes

import (
	"fmt"
	"regexp"
	"strings"

	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// The YAML parser recurses without a bound, and values with aliases are expanded wherever
// their types are compared. So the text is examined before it is parsed; the bounds are
// far above what files written by people need.
const (
	maxYAMLBrackets = 256 // opened and not closed
	maxYAMLIndent   = 512 // spaces and indicators at the start of a line, each of which can nest
	maxYAMLAliases  = 16
)

var (
	yamlIndent = regexp.MustCompile(`(?m)^(?:[ \t]|[-?:][ \t])+`)
	yamlAlias  = regexp.MustCompile(`(?:^|[^\w*])\*[\w-]`)
	yamlDigits = regexp.MustCompile(fmt.Sprintf(`[0-9_]{%d}`, maxDigits+1))
)

var yamlDecodeFunc = guarded(ctyyaml.YAMLDecodeFunc, func(args []cty.Value) error {
	if err := checkYAML(textOf(args, 0)); err != "" {
		return function.NewArgErrorf(0, "%s", err)
	}
	return nil
})

// checkYAML returns why the parser must not get a text, or "" if it may.
func checkYAML(text string) string {
	open := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(open-1, 0)
		}
		if open > maxYAMLBrackets {
			return fmt.Sprintf("the YAML opens more than %d brackets that it does not close", maxYAMLBrackets)
		}
	}
	for _, at := range yamlIndent.FindAllStringIndex(text, -1) {
		if at[1]-at[0] > maxYAMLIndent {
			return fmt.Sprintf("a line of the YAML is indented by more than %d characters", maxYAMLIndent)
		}
	}
	if len(yamlAlias.FindAllStringIndex(text, maxYAMLAliases+1)) > maxYAMLAliases {
		return fmt.Sprintf("the YAML has more than %d aliases", maxYAMLAliases)
	}
	if yamlDigits.MatchString(text) {
		return fmt.Sprintf("a number has at most %d characters", maxDigits)
	}
	return ""
}

// yamlDecoded estimates the size of a decoded text: every alias can double it.
func yamlDecoded(args []cty.Value) int {
	text := textOf(args, 0)
	parts := separators(text) + strings.Count(text, ":") + strings.Count(text, "- ")
	aliases := len(yamlAlias.FindAllStringIndex(text, maxYAMLAliases+1))
	return parts * eachWeighs << aliases
}

// yamlEncoded estimates the size of an encoded value: every line of it is indented.
func yamlEncoded(args []cty.Value) int { return yamlSize(args[0], 0) }

func yamlSize(v cty.Value, depth int) int {
	v, _ = v.Unmark()
	size := eachWeighs + 2*depth
	switch {
	case v.IsNull() || !v.IsKnown():
	case v.Type() == cty.String:
		size += len(v.AsString()) + strings.Count(v.AsString(), "\n")*2*(depth+1)
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next() && size <= maxWeight; {
			_, element := it.Element()
			size += yamlSize(element, depth+1)
		}
	}
	return size
}
