package docstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
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
	for _, k := range journal.EventKinds() {
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

const viewsPage = "docs/reference/views.md"

// TestViews makes sure that the reference describes the views of a store
// with the columns that they have.
func TestViews(t *testing.T) {
	text := readRepository(t, viewsPage)
	var schema strings.Builder
	err := filepath.WalkDir(filepath.Join(root, "sqlitestore"), func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sql" {
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
			t.Errorf("%s does not describe the view %s", viewsPage, v[1])
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
	text := readRepository(t, viewsPage)
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
			t.Errorf("%s does not describe the view %s", viewsPage, view)
			continue
		}
		var described []string
		for _, c := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[1], -1) {
			described = append(described, c[1])
		}
		if strings.Join(described, " ") != columns {
			t.Errorf("%s gives the view %s the columns\n%s\nand it has\n%s", viewsPage, view, strings.Join(described, " "), columns)
		}
		seen++
	}
	if seen < 6 {
		t.Errorf("only %d views were found", seen)
	}
}
