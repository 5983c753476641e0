package terrarium

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/internal/ramdisk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(ramdisk.Tests(m)) }
