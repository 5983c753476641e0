package terrarium_test

import (
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
)

// TestSyncEveryIsRefusedWhereItMeansNothing gives a time after which to sync to what is not
// kept, and to what is synced anyway.
func TestSyncEveryIsRefusedWhereItMeansNothing(t *testing.T) {
	for name, o := range map[string]terrarium.Options{
		"nothing is kept": {SyncEvery: time.Second},
		"full":            {SyncEvery: time.Second, Dir: t.TempDir(), Durability: terrarium.Full},
		"too short":       {SyncEvery: 1, Dir: t.TempDir()},
	} {
		if _, err := terrarium.New(t.Context(), o); abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("%s: %v, want invalid_argument", name, err)
		}
	}
	kept, err := terrarium.New(t.Context(), terrarium.Options{SyncEvery: time.Second, Dir: t.TempDir(), Durability: terrarium.Normal})
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The figures of a session directory are those that the directory tells.
func TestMetricsOfDirectory(t *testing.T) {
	x := opened(t, terrarium.Options{Dir: t.TempDir(), Durability: terrarium.Full, NoSearchIndex: true})
	if _, err := x.Apply(t.Context(), "testdata/count.hcl", terrarium.RecipeOptions{}); err != nil {
		t.Fatal(err)
	}
	before := x.Directory().Wear()
	for range 3 {
		if err := send(t, x, "lines", "INFO"); err != nil {
			t.Fatal(err)
		}
	}
	figures, err := x.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	after := x.Directory().Wear()
	for _, m := range figures {
		switch {
		case m.Name == "terrarium_store_syncs_total" && (m.Value <= float64(before.Syncs) || m.Value > float64(after.Syncs)),
			m.Name == "terrarium_store_written_bytes_total" && (m.Value <= float64(before.WrittenBytes) || m.Value > float64(after.WrittenBytes)):
			t.Errorf("%s is %v, between %+v and %+v", m.Name, m.Value, before, after)
		}
	}
	closed(t, x)
}
