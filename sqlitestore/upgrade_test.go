package sqlitestore

import "testing"

// TestUpgradeGoesOn upgrades a directory in which the live stores have been upgraded already,
// but not those of ended sessions. While the directory is in use, the latter are not upgraded.
func TestUpgradeGoesOn(t *testing.T) {
	dir := asLeft(t, 1)
	d := mustOpen(t, dir)
	graphs, problems, err := d.Saved(t.Context())
	if err != nil || len(graphs) == 0 || len(problems) > 0 {
		t.Fatalf("saved %d, problems %v, %v", len(graphs), problems, err)
	}
	for _, g := range graphs {
		if _, err := d.Open(t.Context(), g.Session); err != nil {
			t.Fatal(err)
		}
	}
	wantOutdated(t, dir, false, true)
	if err := Upgrade(t.Context(), dir); err != nil {
		t.Errorf("while the directory is in use: %v", err)
	}
	wantOutdated(t, dir, false, true)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Upgrade(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	wantOutdated(t, dir, false, false)
	answersOf(t, dir) // each session can be read, and is sound
}

func wantOutdated(t *testing.T, dir string, live, ended bool) {
	t.Helper()
	gotLive, gotEnded, err := outdated(t.Context(), dir)
	if err != nil || gotLive != live || gotEnded != ended {
		t.Errorf("live stores are older: %v, ended ones: %v, %v; want %v, %v", gotLive, gotEnded, err, live, ended)
	}
}
