package recipes

import (
	"bytes"
	"cmp"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// parsedFile is a file of a recipe with its errors.
type parsedFile struct {
	file  *hcl.File
	diags hcl.Diagnostics
}

// parse reads and parses one file of the recipe, once.
func (f *folder) parse(name string) (*hcl.File, hcl.Diagnostics) {
	p, ok := f.parsed[name]
	if !ok {
		p.file, p.diags = f.parseFile(name)
		if f.parsed == nil {
			f.parsed = map[string]parsedFile{}
		}
		f.parsed[name] = p
	}
	return p.file, p.diags
}

func (f *folder) parseFile(name string) (*hcl.File, hcl.Diagnostics) {
	shown := filepath.Join(f.shown, name)
	src, err := f.file(name)
	if err != nil {
		return nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Recipe cannot be read", Detail: sentence(err.Error()),
			Subject: &hcl.Range{Filename: shown}}}
	}
	if strings.HasSuffix(name, ".json") {
		return parseJSON(src, shown)
	}
	return parseNative(src, shown)
}

func parseJSON(src []byte, shown string) (*hcl.File, hcl.Diagnostics) {
	src = bytes.TrimPrefix(src, []byte(byteOrderMark))
	if d := cmp.Or(encoding(src, shown), deceptive(src, shown), measureJSON(src, shown)); d != nil {
		return nil, hcl.Diagnostics{d}
	}
	file, diags := hcljson.Parse(src, shown)
	if file != nil && file.Body != nil {
		file.Body = jsonBody{file.Body}
	}
	return file, diags
}
