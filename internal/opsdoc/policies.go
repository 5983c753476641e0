package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/recipes/policy"
)

// policyFieldTable lists the fields of the events that policies judge, but for
// messages.
func policyFieldTable(b *bytes.Buffer) {
	fmt.Fprintln(b, "| field | of | |\n|---|---|---|")
	for i := range policy.Fields {
		f := &policy.Fields[i]
		of := "all"
		if f.Kinds != nil {
			var names []string
			for _, kind := range engine.PolicyKinds() {
				if slices.Contains(f.Kinds, kind) {
					names = append(names, "`"+string(kind)+"`")
				}
			}
			of = strings.Join(names, ", ")
		}
		what := f.Doc
		if f.Type != policy.Text && f.Type != policy.Data {
			what += " (" + string(f.Type) + ")"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.Name, of, what)
	}
}
