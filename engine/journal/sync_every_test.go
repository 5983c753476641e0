package journal

import (
	"testing"
	"time"
)

// TestSyncEvery reads the metadata of stores, including values that no recipe can have
// written.
func TestSyncEvery(t *testing.T) {
	for _, c := range []struct {
		meta map[string]string
		want time.Duration
	}{
		{nil, 0},
		{map[string]string{"sync_every": "1s"}, time.Second},
		{map[string]string{"sync_every": "1m", "sync_every/other": "2s", "sync_every/third": "3s"}, 2 * time.Second},
		{map[string]string{"sync_every": "", "sync_every/other": "2s"}, 2 * time.Second},
		{map[string]string{"sync_everything": "2s", "policy sync_every/x": "2s"}, 0},
		{map[string]string{"sync_every": "1ns"}, MinSyncEvery},
		{map[string]string{"sync_every": "2000h"}, MaxSyncEvery},
		{map[string]string{"sync_every": "-1s"}, 0},
		{map[string]string{"sync_every": "0s"}, 0},
		{map[string]string{"sync_every": "soon"}, 0},
	} {
		if got := SyncEvery(c.meta); got != c.want {
			t.Errorf("%v: %v, want %v", c.meta, got, c.want)
		}
	}
}
