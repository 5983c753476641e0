package recipes

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// hiddenText is where a recipe gives a sensitive variable its value: the default, or the
// input of a sub-recipe. It is removed from stored copies and from messages.
type hiddenText struct {
	name      string
	attribute hcl.Range // including the name
	value     hcl.Range
}

// hideSensitive records where sensitive variables get their values.
func (vs *variables) hideSensitive() {
	for _, v := range vs.ordered["variable"] {
		if v.attr("sensitive") == nil || !vs.sensitive(v) {
			continue
		}
		if a := v.attr("default"); a != nil {
			vs.hide(v.name, a)
		}
		if vs.block == nil {
			continue
		}
		if a := vs.block.attr(v.name); a != nil && len(a.Expr.Variables()) == 0 {
			vs.hide(v.name, a)
		}
	}
}

func (fs *findings) hide(name string, a *hcl.Attribute) {
	value := a.Expr.Range()
	h := hiddenText{name, hcl.RangeBetween(a.NameRange, value), value}
	if !slices.Contains(fs.hidden, h) { // a sub-recipe is read once for each instance
		fs.hidden = append(fs.hidden, h)
	}
}

// hiddenIn returns the hidden parts of a file, by its displayed name, last first.
func (fs *findings) hiddenIn(shown string) (out []hiddenText) {
	for _, h := range fs.hidden {
		if h.attribute.Filename == shown {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b hiddenText) int { return cmp.Compare(b.value.Start.Byte, a.value.Start.Byte) })
	return out
}

// stored returns the text of a file for a store, without the attributes that give
// sensitive variables their values. These have to be given again.
func (fs *findings) stored(f *folder, name string, data []byte) string {
	for _, h := range fs.hiddenIn(filepath.Join(f.shown, name)) {
		from, to := h.attribute.Start.Byte, h.attribute.End.Byte
		if from < 0 || to > len(data) || from > to {
			continue
		}
		note := "# " + h.name + " is sensitive and not stored"
		if strings.HasSuffix(name, ".json") {
			note = `"//": "` + h.name + ` is sensitive and not stored"` // the parser treats it as a comment
		} else if bytes.HasSuffix(data[from:to], []byte("\n")) { // a heredoc
			note += "\n"
		}
		data = slices.Concat(data[:from], []byte(note), data[to:])
	}
	return string(data)
}

// veiled returns a file without the hidden parts: each is replaced by a mark and as many
// newlines as it had.
func (fs *findings) veiled(shown string, src []byte) []byte {
	for _, h := range fs.hiddenIn(shown) {
		from, to := h.value.Start.Byte, h.value.End.Byte
		if from < 0 || to > len(src) || from > to {
			continue
		}
		lines := bytes.Count(src[from:to], []byte("\n"))
		src = slices.Concat(src[:from], []byte(hiddenValue), bytes.Repeat([]byte("\n"), lines), src[to:])
	}
	return src
}

// unknownSecret returns a placeholder for a sensitive variable when only the shape of a
// recipe is needed: the copy of a recipe does not have the value.
func unknownSecret(ty cty.Type) cty.Value {
	switch ty {
	case cty.String, cty.DynamicPseudoType:
		return cty.StringVal("")
	case cty.Number:
		return cty.Zero
	case cty.Bool:
		return cty.False
	}
	switch {
	case ty.IsListType():
		return cty.ListValEmpty(ty.ElementType())
	case ty.IsSetType():
		return cty.SetValEmpty(ty.ElementType())
	case ty.IsMapType():
		return cty.MapValEmpty(ty.ElementType())
	}
	return cty.NullVal(ty)
}
