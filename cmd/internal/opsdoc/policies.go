package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/recipes/policy"
)

// policyFieldTable lists the fields of all events that policies judge except messages.
func policyFieldTable(b *bytes.Buffer) {
	fmt.Fprintln(b, "| field | of | meaning |\n|---|---|---|")
	for i := range policy.Fields {
		f := &policy.Fields[i]
		of := "all"
		if f.Kinds != nil {
			var names []string
			for _, kind := range journal.PolicyKinds() {
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

// occasionTable lists the events that policies judge.
func occasionTable(b *bytes.Buffer) {
	fmt.Fprintln(b, "| event | when |\n|---|---|")
	for _, o := range policy.Occasions {
		fmt.Fprintf(b, "| `%s` | %s |\n", o.Kind, o.Doc)
	}
}

// answerTable lists the answers that scripts may return.
func answerTable(b *bytes.Buffer) {
	fmt.Fprintln(b, "| answer | on | effect |\n|---|---|---|")
	for _, a := range policy.Answers {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", a.Call, a.On, a.Doc)
	}
}

// messageFieldTable lists the fields of the event send.
func messageFieldTable(b *bytes.Buffer) {
	fmt.Fprintln(b, "| field | meaning |\n|---|---|")
	for _, f := range policy.SendFields {
		fmt.Fprintf(b, "| `%s` | %s |\n", f.Name, f.Doc)
	}
}

// contextTable lists the values that scripts get besides the event.
func contextTable(b *bytes.Buffer) {
	fmt.Fprintln(b, "| field | meaning |\n|---|---|")
	for _, f := range policy.ContextFields {
		fmt.Fprintf(b, "| `%s` | %s |\n", f.Name, f.Doc)
	}
}
