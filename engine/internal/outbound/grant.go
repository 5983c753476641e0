package outbound

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/spending"
	"github.com/seed47132306/terrarium/internal/contain"
)

// grant calls the methods of a capability, which may belong to another program. A method that
// panics has failed; it does not end the process.
type grant struct {
	name string // of the capability, in errors
	of   capability.Grant

	// The rest does not change, so it is read once.
	limits  capability.Limits
	allows  []string
	meter   capability.Meter // nil if it has no budgets
	limited []capability.Budget
}

// lowestRate is about one attempt in twelve days. A pause that is much longer is no pause of a clock.
const lowestRate = 1e-6

func openGrant(kind capability.Kind, c *deploy.Capability) (grant, error) {
	g := grant{name: "the capability " + c.ID()}
	err := contain.Call(g.name, func() (err error) {
		if g.of, err = kind.Open(c.Settings); err != nil {
			return err
		}
		if g.of == nil {
			return contain.Nothing(g.name)
		}
		g.limits, g.allows = g.of.Limits(), g.of.Allows()
		if r := g.limits.Rate; r != 0 && !(r >= lowestRate && r <= math.MaxFloat32) {
			return &abi.Error{Code: abi.Internal, Message: fmt.Sprintf("%s has the rate %v", g.name, r), Remedy: fmt.Sprintf("report it to the author of the kind: a rate is 0, or at least %v", lowestRate)}
		}
		if m, ok := g.of.(capability.Meter); ok {
			g.meter, g.limited = m, m.Budgets()
		}
		return nil
	})
	if g.limits.Concurrency <= 0 {
		g.limits.Concurrency = capability.DefaultConcurrency
	}
	if g.limits.Timeout <= 0 {
		g.limits.Timeout = capability.DefaultTimeout
	}
	return g, err
}

// close closes the grant, if it can be closed. There is no caller for its error.
func (g *grant) close() {
	if c, ok := g.of.(io.Closer); ok {
		_ = contain.Call(g.name, c.Close)
	}
}

func (g *grant) check(r capability.Request) error {
	return contain.Call(g.name, func() error { return g.of.Check(r) })
}

func (g *grant) view(r capability.Request) (view map[string]any, err error) {
	err = contain.Call(g.name, func() error {
		view = g.of.View(r)
		return nil
	})
	return view, err
}

func (g *grant) amend(r capability.Request, members json.RawMessage) (out capability.Request, err error) {
	err = contain.Call(g.name, func() (err error) {
		out, err = g.of.Amend(r, members)
		return err
	})
	return out, err
}

func (g *grant) forecast(r capability.Request) (most map[string]int64, err error) {
	err = contain.Call(g.name, func() error {
		most = spending.Amounts(g.meter.Forecast(r))
		return nil
	})
	return most, err
}

// do makes one attempt.
func (g *grant) do(ctx context.Context, call capability.Call) (r capability.Result) {
	err := g.check(call.Request)
	if err == nil {
		err = contain.Call(g.name, func() error {
			r = g.of.Do(ctx, call)
			return nil
		})
	}
	if err != nil {
		return failed(err)
	}
	return r
}

func failed(err error) capability.Result { return capability.Failure(abi.CodeOf(err), err.Error()) }
