package hostile_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/hostile"
)

var update = flag.Bool("update", false, "write the table of the README again")

const (
	readme     = "README.md"
	tableBegin = "<!-- generated: modules -->\n\n"
	tableEnd   = "\n<!-- end: modules -->"
)

func TestReadmeIsCurrent(t *testing.T) {
	page, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegin)
	if !ok {
		t.Fatalf("%s has no line %q", readme, tableBegin)
	}
	table, after, ok := strings.Cut(rest, tableEnd)
	if !ok {
		t.Fatalf("%s has no line %q", readme, tableEnd)
	}
	want := moduleTable()
	if table == want {
		return
	}
	if !*update {
		t.Fatalf("the table of %s is stale: go test ./conformance/hostile -run Readme -update", readme)
	}
	if err := os.WriteFile(readme, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func moduleTable() string {
	var b strings.Builder
	b.WriteString("| module | attacks | ends in | with | and says |\n|---|---|---|---|---|\n")
	for _, m := range hostile.Modules() {
		in, codes, says := "", []string{}, []string{}
		for _, end := range m.Ends {
			in = end.In
			codes = append(codes, codeName(end.Code))
			if len(end.Says) > 0 {
				says = append(says, "“"+strings.Join(end.Says, "”, “")+"”")
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", m.Name, m.Attacks, in, strings.Join(codes, " or "), strings.Join(says, " or "))
	}
	return b.String()
}

func codeName(c abi.Code) string {
	if c == abi.OK {
		return "nothing: the turn succeeds"
	}
	return "`" + c.String() + "`"
}
