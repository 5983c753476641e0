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
