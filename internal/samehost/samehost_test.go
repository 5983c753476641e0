package samehost_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/samehost"
)

// fake is a host, its module and its instance. It fails in one method, and notes what is
// made of it and not closed.
type fake struct {
	fails string
	open  *[]string
}

func (f fake) make(what string) error {
	if f.fails == what {
		return &abi.Error{Code: abi.Trapped, Message: "no"}
	}
	*f.open = append(*f.open, what)
	return nil
}

func (f fake) Compile(context.Context, []byte) (abi.Module, error) {
	return fakeModule{f}, f.make("compile")
}
func (f fake) Close(context.Context) error { return nil }

type fakeModule struct{ fake }

func (m fakeModule) Info() *abi.ModuleInfo { return nil }
func (m fakeModule) Instantiate(context.Context, *abi.Limits, abi.Turn) (abi.Instance, error) {
	return fakeInstance{fake: m.fake}, m.make("instantiate")
}
func (m fakeModule) Close(context.Context) error { return m.close("compile") }

type fakeInstance struct {
	abi.Instance
	fake
}

func (i fakeInstance) FuelUsed() int64             { return 0 }
func (i fakeInstance) MemoryBytes() int64          { return 0 }
func (i fakeInstance) Close(context.Context) error { return i.close("instantiate") }

func (f fake) close(what string) error {
	at := slices.Index(*f.open, what)
	if at < 0 {
		return errors.New(what + " is closed twice")
	}
	*f.open = slices.Delete(*f.open, at, at+1)
	return nil
}

// Whichever engine fails, the call fails, the difference is reported, and what the others
// have made is closed.
func TestOneEngineFails(t *testing.T) {
	for _, what := range []string{"compile", "instantiate"} {
		for failing := range 3 {
			var open, differences []string
			h := &samehost.Host{Report: func(difference string) { differences = append(differences, difference) }}
			for n, name := range []string{"one", "two", "three"} {
				f := fake{open: &open}
				if n == failing {
					f.fails = what
				}
				h.Engines = append(h.Engines, samehost.Engine{Name: name, Host: f})
			}
			m, err := h.Compile(t.Context(), nil)
			if what == "instantiate" {
				if err != nil {
					t.Fatal(err)
				}
				var i abi.Instance
				if i, err = m.Instantiate(t.Context(), &abi.Limits{}, nil); i != nil {
					t.Errorf("engine %d: there is an instance", failing)
				}
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
			} else if m != nil {
				t.Errorf("engine %d: there is a module", failing)
			}
			if want := map[bool]abi.Code{true: abi.Trapped, false: abi.Internal}[failing == 0]; abi.CodeOf(err) != want {
				t.Errorf("%s of engine %d: %v, want %v", what, failing, err, want)
			}
			if len(open) != 0 {
				t.Errorf("%s of engine %d: %v stay open", what, failing, open)
			}
			if want := map[bool]int{true: 2, false: 1}[failing == 0]; len(differences) != want || !strings.Contains(differences[0], what+" ends with") {
				t.Errorf("%s of engine %d: %q", what, failing, differences)
			}
		}
	}
}
