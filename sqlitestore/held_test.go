package sqlitestore

import (
	"os"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// TestChangesDoNotWaitForWhatCannotBeDone leaves more files than the pacing allows: of a graph
// whose oldest file is missing, and of a graph that is not opened again. In neither case have
// cuts followed each other too fast, and waiting would not help.
func TestChangesDoNotWaitForWhatCannotBeDone(t *testing.T) {
	o := Options{pacing: pacing{remains: 3, buried: 64, patience: time.Hour}, hooks: failpoint.Hooks{Unsynced: true, SmallEvents: -1}}
	dir := t.TempDir()
	for _, damaged := range []bool{true, false} {
		d, err := Open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		if damaged {
			s := createStore(t, d)
			first := s.path()
			logged(s, 1, 200)
			for n := range 6 {
				s = cutAgain(t, d, s, int64(n+10))
				if err := d.keeper.settle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					if err := os.Remove(first); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		failed := d.hydrator.settle(t.Context()) != nil
		n, err := d.catalog.Remains(t.Context())
		if err != nil || n <= 3 || failed != damaged || d.Behind() {
			t.Errorf("damaged %v: %d files remain, %v, failed %v, behind %v", damaged, n, err, failed, d.Behind())
		}
		if err := d.Pace(t.Context()); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
