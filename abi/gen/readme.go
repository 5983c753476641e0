package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// tables are the generated parts of abi/README.md, by the name in their marker.
var tables = []struct {
	name  string
	write func(*bytes.Buffer)
}{
	{"functions", functionTable},
	{"sources", sourceTable},
	{"kinds", kindTable},
	{"codes", codeTable},
	{"levels", levelTable},
	{"features", featureTable},
	{"limits", limitTable},
}

// fillTables puts the tables between their markers.
func fillTables(text []byte) ([]byte, error) {
	for _, t := range tables {
		start := []byte("<!-- generated: " + t.name + " -->\n")
		end := []byte("<!-- end: " + t.name + " -->\n")
		from := bytes.Index(text, start)
		to := bytes.Index(text, end)
		if from < 0 || to < from {
			return nil, fmt.Errorf("the markers of the table %s are missing; write %s%s", t.name, start, end)
		}
		var b bytes.Buffer
		b.Write(text[:from+len(start)])
		b.WriteByte('\n')
		t.write(&b)
		b.WriteByte('\n')
		b.Write(text[to:])
		text = b.Bytes()
	}
	return text, nil
}

// cell escapes text for a table cell.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func functionTable(b *bytes.Buffer) {
	b.WriteString("| function | effect | feature | description |\n|---|---|---|---|\n")
	for _, f := range abi.Functions {
		params := make([]string, len(f.Params))
		for i, p := range f.Params {
			params[i] = p.Name
			if p.Type == abi.I64 {
				params[i] += ": i64"
			}
		}
		effect, feature := "", ""
		if f.Effect {
			effect = "yes"
		}
		if f.Feature >= 0 {
			feature = "`" + abi.Features[f.Feature].Name + "`"
		}
		fmt.Fprintf(b, "| `%s(%s) → %s` | %s | %s | %s |\n", f.Name, strings.Join(params, ", "), typeName(f.Result), effect, feature, cell(f.Doc))
	}
}

func sourceTable(b *bytes.Buffer) {
	b.WriteString("| number | source | holds |\n|---|---|---|\n")
	for _, s := range abi.Sources {
		fmt.Fprintf(b, "| %d | `%s` | %s |\n", s.Source, s.Name, cell(s.Doc))
	}
}

func kindTable(b *bytes.Buffer) {
	b.WriteString("| number | kind | delivered |\n|---|---|---|\n")
	for _, k := range abi.Kinds {
		fmt.Fprintf(b, "| %d | `%s` | %s |\n", k.Kind, k.Name, cell(k.Doc))
	}
}

func codeTable(b *bytes.Buffer) {
	b.WriteString("| result | code | meaning |\n|---|---|---|\n")
	for _, c := range abi.Codes {
		fmt.Fprintf(b, "| %d | `%s` | %s |\n", c.Code.Status(), c.Name, cell(c.Doc))
	}
}

func levelTable(b *bytes.Buffer) {
	b.WriteString("| number | level |\n|---|---|\n")
	for i, name := range abi.LevelNames {
		fmt.Fprintf(b, "| %d | `%s` |\n", i, name)
	}
}

func featureTable(b *bytes.Buffer) {
	b.WriteString("| number | feature | brings |\n|---|---|---|\n")
	for _, f := range abi.Features {
		fmt.Fprintf(b, "| %d | `%s` | %s |\n", f.Feature, f.Name, cell(f.Doc))
	}
}

func limitTable(b *bytes.Buffer) {
	b.WriteString("| limit | bounds | default |\n|---|---|---|\n")
	defaults := limitDefaults()
	for _, l := range abi.LimitTable {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", l.Name, cell(l.Doc), amount(defaults[l.Name], l.Unit))
	}
	fmt.Fprintf(b, "\nIn addition to the limits of a creature, a module can have at most %s, and a manifest at most %s.\n",
		amount(abi.MaxModuleBytes, "bytes"), amount(abi.MaxManifestBytes, "bytes"))
}

// limitDefaults are the default limits by the names in their tags.
func limitDefaults() map[string]int64 {
	defaults := reflect.ValueOf(abi.DefaultLimits)
	m := map[string]int64{}
	for i := range defaults.NumField() {
		name, _, _ := strings.Cut(defaults.Type().Field(i).Tag.Get("json"), ",")
		m[name] = defaults.Field(i).Int()
	}
	return m
}

// amount returns a number with its unit in readable form.
func amount(n int64, unit string) string {
	const kib, mib = 1 << 10, 1 << 20
	switch {
	case unit == "time":
		return time.Duration(n).String()
	case unit == "bytes" && n%mib == 0:
		return fmt.Sprintf("%d MiB", n/mib)
	case unit == "bytes" && n%kib == 0:
		return fmt.Sprintf("%d KiB", n/kib)
	}
	return thousands(n) + " " + unit
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
