package operations

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/internal/ramdisk"
	_ "github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/internal/unhurried"
)

func TestMain(m *testing.M) {
	unhurried.Policies = unhurried.Plenty
	goleak.VerifyTestMain(ramdisk.Tests(m))
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
