package terrarium

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/internal/ramdisk"
	"github.com/seed47132306/terrarium/internal/unhurried"
)

func TestMain(m *testing.M) {
	unhurried.Policies = unhurried.Plenty
	goleak.VerifyTestMain(ramdisk.Tests(m))
}
