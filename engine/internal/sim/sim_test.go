package sim

import (
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/storetest"
)

func TestStorage(t *testing.T) {
	disks := map[string]*Disk{}
	storetest.Run(t, func(_ *testing.T, dir string) journal.Storage {
		if disks[dir] == nil {
			disks[dir] = NewDisk(uint64(len(disks)))
		}
		return disks[dir].Boot()
	})
}
