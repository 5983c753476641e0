package main

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// goConstants is sdk/go/terrarium/zabi.go.
func goConstants() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\npackage terrarium\n\n", notice)
	fmt.Fprintf(&b, "// ABIVersion is the version of the contract that this package speaks.\nconst ABIVersion = %d\n\n", abi.Version)

	b.WriteString("// The error codes of the contract.\nconst (\n")
	for _, c := range abi.Codes {
		fmt.Fprintf(&b, "\t%s Code = %d // %s\n", camel(c.Name), c.Code, c.Doc)
	}
	b.WriteString(")\n\nvar codeNames = [...]string{\"ok\"")
	for _, c := range abi.Codes {
		fmt.Fprintf(&b, ", %q", c.Name)
	}
	b.WriteString("}\n\n// The sources.\nconst (\n")
	for _, s := range abi.Sources {
		fmt.Fprintf(&b, "\tSource%s Source = %d // %s\n", camel(s.Name), s.Source, s.Doc)
	}
	b.WriteString(")\n\n// The kinds of delivery.\nconst (\n")
	for _, k := range abi.Kinds {
		fmt.Fprintf(&b, "\tKind%s Kind = %d // %s\n", camel(k.Name), k.Kind, k.Doc)
	}
	b.WriteString(")\n\n// The levels of log lines.\nconst (\n")
	for i, name := range abi.LevelNames {
		fmt.Fprintf(&b, "\tLevel%s Level = %d\n", camel(name), i)
	}
	b.WriteString(")\n\n// The optional features.\nconst (\n")
	for _, f := range abi.Features {
		fmt.Fprintf(&b, "\tFeature%s Feature = %d // %s\n", camel(f.Name), f.Feature, f.Doc)
	}
	b.WriteString(")\n")
	return format.Source(b.Bytes())
}

// goLimits is sdk/go/terrarium/terrariumtest/zlimits.go.
func goLimits() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\npackage terrariumtest\n\n", notice)
	b.WriteString("// The limits of a turn and of a creature, as they are by default.\nconst (\n")
	defaults := limitDefaults()
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		fmt.Fprintf(&b, "\tmax%s = %d\n", camel(name), defaults[name])
	}
	b.WriteString(")\n")
	return format.Source(b.Bytes())
}

// goImports is sdk/go/terrarium/zimports_wasip1.go.
func goImports() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\n//go:build wasip1 && wasm\n\npackage terrarium\n\nimport \"unsafe\"\n", notice)
	for _, f := range abi.Functions {
		fmt.Fprintf(&b, "\n//go:wasmimport %s %s\n//go:noescape\nfunc import%s(%s) %s\n",
			abi.ImportModule, f.Name, camel(f.Name), goParams(f), goType(f.Result))
	}
	return format.Source(b.Bytes())
}

func goType(t abi.ValueType) string {
	if t == abi.I64 {
		return "int64"
	}
	return "int32"
}

func goParams(f abi.Function) string {
	params := make([]string, len(f.Params))
	for i, p := range f.Params {
		name := p.Name
		if at := strings.IndexByte(name, '_'); at > 0 {
			name = name[:at] + camel(name[at+1:])
		}
		typ := goType(p.Type)
		if roleOf(f, i) != number {
			typ = "unsafe.Pointer"
		}
		if name == "len" || name == "cap" {
			name = "n" // not the builtins
		}
		params[i] = name + " " + typ
	}
	return strings.Join(params, ", ")
}
