package recipes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// Severity is the severity of a finding.
type Severity uint8

// The severities.
const (
	Error   Severity = iota + 1 // the recipe cannot be applied
	Warning                     // it can, but probably not as intended
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Pos is a position in a file. Line and Column count from 1, Column in characters as
// displayed; Byte counts from 0.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// Range is a part of a file; End is exclusive. A diagnostic about the whole recipe has an
// empty File or a Start.Line of 0.
type Range struct {
	File  string `json:"file"`
	Start Pos    `json:"start"`
	End   Pos    `json:"end"`
}

// Value is a value in the expression that a diagnostic is about.
type Value struct {
	Name string `json:"name"`  // the traversal, for example var.reviewers
	Text string `json:"value"` // readable; never that of a sensitive variable
}

// Diagnostic is one finding about a recipe.
type Diagnostic struct {
	Severity   Severity
	Summary    string // a few words
	Detail     string // full sentences; may be empty
	Suggestion string // the name that was probably intended; may be empty
	Remedy     string // what to do, a full sentence; may be empty
	Range      Range
	Block      string   // the enclosing block, for example: creature "reviewer"
	Values     []Value  // sorted by name
	Snippet    []string // the lines of Range, at most maxSnippetLines

	failed string // address of the variable or check whose condition is false
}

// maxSnippetLines bounds the lines quoted from a long range.
const maxSnippetLines = 5

// Error returns "file:line:column: summary; detail".
func (d Diagnostic) Error() string {
	var b strings.Builder
	if p := d.place(); p != "" {
		b.WriteString(p)
		b.WriteString(": ")
	}
	b.WriteString(d.Summary)
	for _, s := range []string{d.Detail, d.question(), d.Remedy} {
		if s != "" {
			b.WriteString("; ")
			b.WriteString(s)
		}
	}
	return b.String()
}

// place returns "file:line:column", or the known part of it.
func (d Diagnostic) place() string {
	if d.Range.File == "" || d.Range.Start.Line == 0 {
		return d.Range.File
	}
	return fmt.Sprintf("%s:%d:%d", d.Range.File, d.Range.Start.Line, d.Range.Start.Column)
}

func (d Diagnostic) question() string {
	if d.Suggestion == "" {
		return ""
	}
	return fmt.Sprintf("Did you mean %q?", d.Suggestion)
}

// Diagnostics are all findings about a recipe, by file and position.
type Diagnostics []Diagnostic

// HasErrors reports whether the recipe cannot be applied.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Count returns how many errors and warnings there are.
func (ds Diagnostics) Count() (errors, warnings int) {
	for _, d := range ds {
		if d.Severity == Error {
			errors++
		} else {
			warnings++
		}
	}
	return errors, warnings
}

// Err returns nil if there is no error, else an [abi.Error] with the code
// [abi.InvalidArgument] that has the first error and their number.
func (ds Diagnostics) Err() error {
	n, _ := ds.Count()
	if n == 0 {
		return nil
	}
	first := ds[slices.IndexFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })]
	remedy := first.Remedy
	first.Remedy = "" // the error has it separately
	message := "the recipe is not valid: " + first.Error()
	if n > 1 {
		message = fmt.Sprintf("the recipe has %d errors, the first being: %s", n, first.Error())
	}
	return &abi.Error{Code: abi.InvalidArgument, Op: "load recipe", Message: message, Remedy: remedy,
		IDs: map[string]string{"path": first.Range.File}}
}

// tidy returns the findings sorted and without duplicates.
func (ds Diagnostics) tidy() Diagnostics {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Range.File, b.Range.File),
			cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Summary, b.Summary),
			cmp.Compare(a.Detail, b.Detail),
		)
	})
	return slices.CompactFunc(ds, func(a, b Diagnostic) bool { // b comes before a
		if a.Summary == "Missing newline after argument" && b.Severity == Error && a.Range.File == b.Range.File && b.Range.End.Byte == a.Range.Start.Byte {
			return true // the text there is already reported: it has no quotes, such as builtin:echo
		}
		return a.Severity == b.Severity && a.Summary == b.Summary && a.Detail == b.Detail && a.Range == b.Range
	})
}
