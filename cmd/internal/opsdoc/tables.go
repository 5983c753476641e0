package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/seed47132306/terrarium/abi"
)

func limitTable(b *bytes.Buffer) {
	b.WriteString("| limit | default | bounds |\n|---|---|---|\n")
	v := reflect.ValueOf(abi.DefaultLimits)
	for _, info := range abi.LimitTable {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", info.Name, limitText(fieldNamed(v, info.Name), info.Unit), info.Doc)
	}
}

// fieldNamed returns the field of a struct by its JSON name.
func fieldNamed(v reflect.Value, name string) any {
	for _, f := range reflect.VisibleFields(v.Type()) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return v.FieldByIndex(f.Index).Interface()
		}
	}
	return nil
}

func limitText(value any, unit string) string {
	switch n := value.(type) {
	case time.Duration:
		return n.String()
	case int64:
		if unit == "bytes" {
			return sizeText(n)
		}
		return humanize.Comma(n) + " " + unit
	case int:
		return humanize.Comma(int64(n)) + " " + unit
	}
	return fmt.Sprint(value)
}

func sizeText(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

func codeTable(b *bytes.Buffer) {
	b.WriteString("| code | means |\n|---|---|\n")
	for _, c := range abi.Codes {
		fmt.Fprintf(b, "| `%s` | %s |\n", c.Name, cell(c.Doc))
	}
}

// cell returns text in a form that fits a table cell.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
