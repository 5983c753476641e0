package plugins_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/ramdisk"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/plugins/internal/guestbuild"
)

const root = ".."

func TestMain(m *testing.M) { goleak.VerifyTestMain(ramdisk.Tests(withCode{m})) }

// withCode runs tests that share compiled code, which would otherwise be most of their work.
type withCode struct{ *testing.M }

// codeDir is the cache of hosts that compile for tests.
var codeDir string

func (m withCode) Run() int {
	var err error
	if codeDir, err = os.MkdirTemp("", "plugins-"); err != nil {
		panic(err)
	}
	code := m.M.Run()
	if err := os.RemoveAll(codeDir); err != nil {
		panic(err)
	}
	return code
}

func TestGet(t *testing.T) {
	for _, name := range plugins.Names() {
		module, err := plugins.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		module[0] = 'X'
		if again, err := plugins.Get(name); err != nil || again[0] != 0 {
			t.Errorf("%s: a caller's change is seen by the next (%v)", name, err)
		}
	}
}

func TestGetSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   abi.Code
		remedy string
	}{
		{"tallly", abi.NotFound, "did you mean tally?"},
		{"Echo", abi.NotFound, "did you mean echo?"},
		{"router", abi.NotFound, "use one of agent, clerk, echo, envoy, foreman, gate, join, js, operator, relay, select, split, tally"},
		{"", abi.NotFound, "use one of"},
		{"../echo/echo", abi.NotFound, "use one of"},
		{"digest", abi.Unavailable, "make digest"},
	} {
		_, err := plugins.Get(c.name)
		if abi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.remedy) {
			t.Errorf("Get(%q): %v; want %v with %q", c.name, err, c.code, c.remedy)
		}
	}
}

func TestNamesAreTheEmbeddedGuests(t *testing.T) {
	want := []string{"agent"} // a script, which is not built
	for _, g := range guestbuild.Guests {
		if g.Embedded {
			want = append(want, g.Name)
		} else if _, err := plugins.Get(g.Name); abi.CodeOf(err) != abi.Unavailable {
			t.Errorf("%s is built on demand, but Get says %v", g.Name, err)
		}
	}
	if got := plugins.Names(); !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
}

// Runs everywhere: compares the sums recorded when the modules were built. make guests-check
// builds them again, with the toolchain that built them.
func TestPrebuiltGuestsAreCurrent(t *testing.T) {
	if err := guestbuild.CheckSums(root); err != nil {
		t.Error(err)
	}
}
