package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// cHeader is sdk/c/terrarium.h.
func cHeader() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `// %s
//
// The creature contract, version %d, for C and C++ without a libc. Its rules are
// in abi/README.md; creature.h beside this file adds helpers.
#ifndef TERRARIUM_H
#define TERRARIUM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TERRARIUM_ABI_VERSION %d

// The handle that stands for every channel the creature may send on.
#define TERRARIUM_ALL_CHANNELS (%d)

// The custom section of a module that has its manifest.
#define TERRARIUM_MANIFEST_SECTION "%s"

#ifdef __wasm__
#define TERRARIUM_EXPORT(name) __attribute__((export_name(name), visibility("default")))
#define TERRARIUM_IMPORT(name) __attribute__((import_module("%s"), import_name(name)))
#else // a native test, in which fake.h is the host
#define TERRARIUM_EXPORT(name)
#define TERRARIUM_IMPORT(name)
#endif

`, notice, abi.Version, abi.Version, abi.AllChannels, abi.ManifestSection, abi.ImportModule)
	cEnums(&b)
	cNames(&b)
	cLimits(&b)
	cExports(&b)
	b.WriteString("// The functions that a creature may import.\n")
	for _, f := range abi.Functions {
		b.WriteByte('\n')
		b.WriteString(wrap("//", f.Doc, 100))
		fmt.Fprintf(&b, "TERRARIUM_IMPORT(%q)\nextern %s terrarium_%s(%s);\n", f.Name, cType(f.Result), f.Name, cParams(f))
	}
	b.WriteString("\n#ifdef __cplusplus\n}\n#endif\n\n#endif // TERRARIUM_H\n")
	return b.Bytes()
}

func cEnums(b *bytes.Buffer) {
	b.WriteString("// Results of hostcalls and creatures: success, or an error.\nenum terrarium_status {\n\tTERRARIUM_OK = 0,\n")
	for _, c := range abi.Codes {
		fmt.Fprintf(b, "\tTERRARIUM_ERR_%s = %d, // %s\n", upper(c.Name), c.Code.Status(), c.Doc)
	}
	last := abi.Codes[len(abi.Codes)-1]
	fmt.Fprintf(b, "\tTERRARIUM_ERR_LAST = TERRARIUM_ERR_%s,\n", upper(last.Name))
	b.WriteString("};\n\n// Readable sources.\nenum terrarium_source {\n")
	for _, s := range abi.Sources {
		fmt.Fprintf(b, "\tTERRARIUM_SOURCE_%s = %d, // %s\n", upper(s.Name), s.Source, s.Doc)
	}
	b.WriteString("};\n\n// Why creature_handle is called.\nenum terrarium_kind {\n")
	for _, k := range abi.Kinds {
		fmt.Fprintf(b, "\tTERRARIUM_KIND_%s = %d, // %s\n", upper(k.Name), k.Kind, k.Doc)
	}
	b.WriteString("};\n\n// Levels of log lines.\nenum terrarium_level {\n")
	for i, name := range abi.LevelNames {
		fmt.Fprintf(b, "\tTERRARIUM_LEVEL_%s = %d,\n", upper(name), i)
	}
	b.WriteString("};\n\n// Optional parts of the contract.\nenum terrarium_feature {\n")
	for _, f := range abi.Features {
		fmt.Fprintf(b, "\tTERRARIUM_FEATURE_%s = %d, // %s\n", upper(f.Name), f.Feature, f.Doc)
	}
	b.WriteString("};\n\n")
}

// cNames writes the names of the tables, each as one literal, so that a module has only
// those that it uses.
func cNames(b *bytes.Buffer) {
	list := func(what, doc string, names []string) {
		fmt.Fprintf(b, "// %s, each followed by NUL.\n#define TERRARIUM_%s \\\n\t\"%s\"\n\n", doc, what, strings.Join(names, "\\0\" \\\n\t\""))
	}
	codes := []string{"ok"}
	for _, c := range abi.Codes {
		codes = append(codes, c.Name)
	}
	list("CODE_NAMES", "The names of the results, from 0 downwards", codes)
	kinds := []string{""}
	for _, k := range abi.Kinds {
		kinds = append(kinds, k.Name)
	}
	b.WriteString("// For tests.\n#ifndef __wasm__\n")
	list("KIND_NAMES", "The names of the kinds, by number", kinds)
	list("LEVEL_NAMES", "The names of the levels, by number", abi.LevelNames)
}

// cLimits writes the default limits for the fake host. A creature must not rely on them.
func cLimits(b *bytes.Buffer) {
	b.WriteString("// The default limits: the operator may set others.\nenum terrarium_limit {\n")
	defaults := limitDefaults()
	for _, l := range abi.LimitTable {
		if l.Unit == "time" {
			continue
		}
		fmt.Fprintf(b, "\tTERRARIUM_LIMIT_%s = %d, // %s\n", upper(l.Name), defaults[l.Name], l.Doc)
	}
	b.WriteString("};\n#endif\n\n")
}

func cExports(b *bytes.Buffer) {
	fmt.Fprintf(b, `// What a creature exports: the macro TERRARIUM_CREATURE of creature.h defines them.
// The last two are optional.
TERRARIUM_EXPORT("%s") int32_t %s(int32_t kind, int32_t size);
TERRARIUM_EXPORT("%s") int32_t %s(void);
TERRARIUM_EXPORT("%s") void %s(void);

// Declares that the module is a creature.
#define TERRARIUM_MARKER() \
	TERRARIUM_EXPORT("%s") void %s(void) {}

// Declares that the creature wants the kind graph_changed: write it once, at the top
// level.
#define TERRARIUM_GRAPH_CHANGED() \
	TERRARIUM_EXPORT("%s") void %s(void) {}

`, abi.ExportHandle, abi.ExportHandle, abi.ExportInit, abi.ExportInit, abi.ExportStop, abi.ExportStop, abi.ExportMarker, abi.ExportMarker, abi.ExportGraphChanged, abi.ExportGraphChanged)
}

func cType(t abi.ValueType) string {
	if t == abi.I64 {
		return "int64_t"
	}
	return "int32_t"
}

func cParams(f abi.Function) string {
	if len(f.Params) == 0 {
		return "void"
	}
	params := make([]string, len(f.Params))
	for i, p := range f.Params {
		switch roleOf(f, i) {
		case input:
			params[i] = "const void *" + p.Name
		case outcome:
			params[i] = "void *" + p.Name
		default:
			params[i] = cType(p.Type) + " " + p.Name
		}
	}
	return strings.Join(params, ", ")
}
