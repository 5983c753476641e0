package journal

import (
	"strings"
	"time"
)

// MetaSyncEvery is the key of a store's metadata ([StoreSpec].Meta) that bounds what a power
// failure can lose from a store of the durability [Normal]: what it has written is
// synced
// after this time, a text such as "1s". If the store has members of several deployments, the
// keys of the others have a slash and the name of the deployment appended; the shortest of
// the times applies.
const MetaSyncEvery = "sync_every"

// The bounds of the time after which stores are synced. A shorter time is what the
// durability [Full] is for, and a longer one is no better than none.
const (
	MinSyncEvery = 10 * time.Millisecond
	MaxSyncEvery = 24 * time.Hour
)

// SyncEvery returns the time of [MetaSyncEvery] in a store's metadata, or 0 if there is none.
// Metadata may come from anywhere: a text that is no time counts as none, and other times
// are brought within the bounds.
func SyncEvery(meta map[string]string) (every time.Duration) {
	for key, text := range meta {
		if key != MetaSyncEvery && !strings.HasPrefix(key, MetaSyncEvery+"/") {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			continue
		}
		if d = min(max(d, MinSyncEvery), MaxSyncEvery); every == 0 || d < every {
			every = d
		}
	}
	return every
}
