package docstest

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

// TestEventKinds makes sure that the page of events explains every kind and no
// other.
func TestEventKinds(t *testing.T) {
	text := readRepository(t, "docs/reference/events.md")
	headings := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(text, -1) {
		headings[m[1]] = true
	}
	_, reserved, _ := strings.Cut(text, "\n## Reserved\n")
	for _, k := range engine.EventKinds() {
		name := k.String()
		if !headings[name] && !strings.Contains(reserved, "`"+name+"`") {
			t.Errorf("docs/reference/events.md does not explain %s", name)
		}
		delete(headings, name)
	}
	for name := range headings {
		t.Errorf("docs/reference/events.md explains %s, which does not exist", name)
	}
}

// TestFunctions compares the functions of the recipes page with those that
// expressions can call.
func TestFunctions(t *testing.T) {
	_, text, _ := strings.Cut(readRepository(t, "docs/reference/recipes.md"), "<!-- functions -->")
	text, _, _ = strings.Cut(text, "\n## ")
	var described []string
	for _, row := range regexp.MustCompile(`(?m)^\| \w[^|]*\|(.*)\|$`).FindAllStringSubmatch(text, -1) {
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			described = append(described, m[1])
		}
	}
	defined := definedFunctions(t)
	for _, name := range described {
		if !slices.Contains(defined, name) {
			t.Errorf("docs/reference/recipes.md lists %s, which is no function", name)
		}
	}
	for _, name := range defined {
		if !slices.Contains(described, name) {
			t.Errorf("docs/reference/recipes.md does not list the function %s", name)
		}
	}
}

// definedFunctions reads the names from the source: keys of maps of functions,
// and what is assigned to one.
func definedFunctions(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "recipes/functions.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if name, err := strconv.Unquote(lit.Value); err == nil {
				names = append(names, name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if m, ok := n.Type.(*ast.MapType); ok && isFunctionType(m.Value) {
				for _, e := range n.Elts {
					add(e.(*ast.KeyValueExpr).Key)
				}
			}
		case *ast.AssignStmt:
			if index, ok := n.Lhs[0].(*ast.IndexExpr); ok {
				add(index.Index)
			}
		}
		return true
	})
	if len(names) < 20 {
		t.Fatalf("recipes/functions.go defines %v only: this test does not understand it any more", names)
	}
	return names
}

func isFunctionType(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Function"
}

var attributeRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")

// TestAttributes makes sure that a recipe may have every attribute that the
// page describes, in the block that it describes.
func TestAttributes(t *testing.T) {
	text := readRepository(t, "docs/reference/recipes.md")
	checked := 0
	for _, b := range []struct{ block, labels string }{
		{"terrarium", ""}, {"session", ""}, {"variable", `"x"`}, {"channel", `"x"`}, {"creature", `"x"`}, {"predicate", `"x"`}, {"policy", `"send" "x"`},
	} {
		_, section, found := strings.Cut(text, "\n## "+b.block+"\n")
		if !found {
			t.Errorf("docs/reference/recipes.md has no section %s", b.block)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, m := range attributeRow.FindAllStringSubmatch(section, -1) {
			line := m[1] + " = null"
			if isBlock(m[1]) {
				line = m[1] + " {}"
			} else if m[1] == "wire" && b.block == "creature" {
				line = `wire "x" { to = root }`
			}
			recipe := fmt.Sprintf("%s %s {\n  %s\n}\n", b.block, b.labels, line)
			if complaint := unsupported(t, recipe); complaint != "" {
				t.Errorf("%s of a block %s: %s", m[1], b.block, complaint)
			}
			checked++
		}
	}
	if checked < 30 {
		t.Errorf("only %d attributes were found on the page", checked)
	}
	if unsupported(t, "terrarium {\n  nonsense = null\n}\n") == "" {
		t.Error("this test does not notice an attribute that does not exist")
	}
}

func isBlock(name string) bool {
	return slices.Contains([]string{"limits", "restart", "mailbox", "grants"}, name)
}

// unsupported returns what is said of the second line of a recipe because of a
// word that has no meaning there.
func unsupported(t *testing.T, recipe string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "attribute.hcl")
	if err := os.WriteFile(path, []byte(recipe), 0o644); err != nil {
		t.Fatal(err)
	}
	_, diags := terrarium.LoadRecipe(context.Background(), path, terrarium.RecipeOptions{})
	for _, d := range diags {
		if d.Range.Start.Line == 2 && regexp.MustCompile(`(?i)unsupported|not supported|unknown (argument|attribute|block)`).MatchString(d.Summary) {
			return d.Summary
		}
	}
	return ""
}

// TestViews makes sure that the page of storage describes the views of a store
// with the columns that they have.
func TestViews(t *testing.T) {
	text := readRepository(t, "docs/reference/storage.md")
	var schema strings.Builder
	err := filepath.WalkDir(filepath.Join(root, "sqlitestore/schema"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		schema.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	views := regexp.MustCompile(`CREATE VIEW (\w+)`).FindAllStringSubmatch(schema.String(), -1)
	if len(views) < 7 {
		t.Fatalf("the schema has the views %v", views)
	}
	for _, v := range views {
		if !strings.Contains(text, "| `"+v[1]+"` |") {
			t.Errorf("docs/reference/storage.md does not describe the view %s", v[1])
		}
	}
}

// columnsQuery lists the views of a database with their columns.
const columnsQuery = `SELECT m.name || '|' || group_concat(p.name, ' ') FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'view' GROUP BY m.name`

// TestColumns compares the columns of the views with what the page says, where
// there is a sqlite3 to ask.
func TestColumns(t *testing.T) {
	if _, err := exec.LookPath("sqlite3"); err != nil {
		t.Logf("the columns were not compared, there is no sqlite3")
		return
	}
	text := readRepository(t, "docs/reference/storage.md")
	dir := workplace(t)
	out, code := shell(t, dir, `bin/terrarium run examples/quickstart --exit-when-idle -q --session S && sqlite3 S/stores/*.db "`+columnsQuery+`"`)
	if code != 0 {
		t.Fatal(out)
	}
	seen := 0
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		view, columns, _ := strings.Cut(line, "|")
		m := regexp.MustCompile("(?m)^\\| `" + view + "` \\|[^|]*\\|(.*)\\|$").FindStringSubmatch(text)
		if m == nil {
			t.Errorf("docs/reference/storage.md does not describe the view %s", view)
			continue
		}
		var described []string
		for _, c := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[1], -1) {
			described = append(described, c[1])
		}
		if strings.Join(described, " ") != columns {
			t.Errorf("docs/reference/storage.md gives the view %s the columns\n%s\nand it has\n%s", view, strings.Join(described, " "), columns)
		}
		seen++
	}
	if seen < 6 {
		t.Errorf("only %d views were found", seen)
	}
}
