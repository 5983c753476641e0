package recipes

import (
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// hiddenValue stands for a sensitive value.
const hiddenValue = "(sensitive value)"

// maxLine bounds the width of a list that is written on one line.
const maxLine = 80

// textOfValue formats a value as in a recipe. Sensitive values are hidden.
func textOfValue(v cty.Value) string { return textAt(v, "") }

// textAt formats a value, with an indentation for further lines.
func textAt(v cty.Value, indent string) string {
	switch {
	case v.IsMarked():
		return hiddenValue
	case !v.IsKnown():
		return "(not known)"
	case v.IsNull():
		return "null"
	}
	for _, kind := range []string{"channel", "creature", "species", "predicate"} {
		if address, ok := refAddress(v, kind); ok && !v.ContainsMarked() {
			return address
		}
	}
	switch ty := v.Type(); {
	case ty.IsObjectType(), ty.IsMapType():
		return objectText(v, indent)
	case v.CanIterateElements():
		return listText(v, indent)
	case ty.IsPrimitiveType():
		return string(hclwrite.TokensForValue(v).Bytes())
	}
	return "(not known)"
}

// attributeText is an attribute of an object.
type attributeText struct{ key, value string }

// objectText writes an object, one attribute per line. The equals signs of consecutive
// attributes are aligned, unless one of the attributes takes several lines.
func objectText(v cty.Value, indent string) string {
	var list []attributeText
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		list = append(list, attributeText{keyText(key.AsString()), textAt(value, indent+"  ")})
	}
	if len(list) == 0 {
		return "{}"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for len(list) > 0 {
		n, width := alignedRun(list)
		for _, a := range list[:n] {
			b.WriteString(indent + "  " + a.key + strings.Repeat(" ", width-letters(a.key)) + " = " + a.value + "\n")
		}
		list = list[n:]
	}
	return b.String() + indent + "}"
}

// alignedRun returns how many attributes at the start of the list are aligned, and the
// width of their keys.
func alignedRun(list []attributeText) (n, width int) {
	for _, a := range list {
		if strings.Contains(a.value, "\n") {
			break
		}
		n, width = n+1, max(width, letters(a.key))
	}
	if n == 0 {
		return 1, letters(list[0].key)
	}
	return n, width
}

// letters counts characters like the formatter, regardless of their width.
func letters(text string) int {
	n := 0
	for _, r := range text {
		if !combines(r) {
			n++
		}
	}
	return n
}

// keyText returns a key as it is written: for would begin an expression.
func keyText(key string) string {
	if hclsyntax.ValidIdentifier(key) && key != "for" {
		return key
	}
	return string(hclwrite.TokensForValue(cty.StringVal(key)).Bytes())
}

// listText writes a list, a set or a tuple, on one line if it is short.
func listText(v cty.Value, indent string) string {
	var list []string
	width, whole := columns(indent)+len("[]"), true
	for it := v.ElementIterator(); it.Next(); {
		_, value := it.Element()
		text := textAt(value, indent+"  ")
		list = append(list, text)
		width += columns(text) + len(", ")
		whole = whole && !strings.Contains(text, "\n")
	}
	if whole && width <= maxLine {
		return "[" + strings.Join(list, ", ") + "]"
	}
	var b strings.Builder
	b.WriteString("[\n")
	for _, text := range list {
		b.WriteString(indent + "  " + text + ",\n")
	}
	return b.String() + indent + "]"
}
