package sqlitestore

import (
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"

	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestViewsAreDocumented compares the views of a store and of the catalogue with the tables of
// the reference: names and columns, in their order. Other programs rely on them.
func TestViewsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/views.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page2, _ := strings.Cut(string(page), "## Views")
	documented := map[string]string{}
	aside := regexp.MustCompile(`\([^)]*\)`)
	for line := range strings.Lines(page2) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		columns := regexp.MustCompile("`[a-z0-9_]+`").FindAllString(aside.ReplaceAllString(cells[3], ""), -1)
		documented[strings.Trim(cells[1], " `")] = strings.ReplaceAll(strings.Join(columns, " "), "`", "")
	}
	dir, stores := filled(t, 1)
	found := 0
	for _, path := range []string{stores[0], filepath.Join(dir, catalog.Name)} {
		for view, columns := range viewsOf(t, path) {
			found++
			if documented[view] != columns {
				t.Errorf("the view %s has the columns %s; documented are %s", view, columns, documented[view])
			}
		}
	}
	if found != len(documented) || found < 11 {
		t.Errorf("there are %d views, but %d are documented", found, len(documented))
	}
}

func viewsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	c, err := sqlite.Open(path, sqlite.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	err = c.Query(`SELECT m.name, (SELECT group_concat(name, ' ') FROM (SELECT name FROM pragma_table_info(m.name) ORDER BY cid))
		FROM sqlite_schema m WHERE m.type = 'view'`, nil, func(v []driver.Value) error {
		out[sqlite.TextIn(v[0])] = sqlite.TextIn(v[1])
		return nil
	})
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}
