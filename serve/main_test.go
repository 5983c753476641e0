package serve_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/internal/ramdisk"
	_ "github.com/seed47132306/terrarium/internal/seeded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(ramdisk.Tests(m)) }
