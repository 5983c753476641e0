package journal

import (
	"strings"
	"time"
)

// MetaSyncEvery is the key of a store's metadata ([StoreSpec].Meta) that bounds what a power
// failure can lose from a store of the durability [Normal]. The value is a time, such as
// "1s", after which written data is synced. If the store has members of several deployments,
// the keys of the other deployments have a slash and the name of the deployment appended.
// The shortest of the times applies.
const MetaSyncEvery = "sync_every"

// The bounds of the time after which stores are synced. Use the durability [Full] instead of
// a shorter time. A longer time would have no benefit over none.
const (
	MinSyncEvery = 10 * time.Millisecond
	MaxSyncEvery = 24 * time.Hour
)

// SyncEvery returns the time of [MetaSyncEvery] in a store's metadata, or 0 if there is none.
// Metadata is not trusted: a value that is not a time is ignored, and other times are
// brought within the bounds.
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
