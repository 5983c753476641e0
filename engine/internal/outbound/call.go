package outbound

import (
	"context"

	"github.com/seed47132306/terrarium/capability"
)

// Call is a request that waits for its result.
type Call struct {
	capability.Call
	// Begin is called before the first attempt, when it may block, and again right before
	// each attempt. It returns the access that grants the request now. If it returns nil,
	// the request is dropped.
	Begin func(context.Context) *Access
	// Spend changes what the creature of the request has used.
	Spend func(context.Context, Spending) error
	// End is called once with the result, unless the request is dropped, and may block.
	// dead tells whether a failed result becomes a dead letter.
	End func(ctx context.Context, r capability.Result, dead bool)
	// Drop is called instead of End. The request stays open.
	Drop func()

	o    *Outbound
	ctx  context.Context // ends with the Outbound, and when the call is interrupted
	stop context.CancelFunc
}

// Spending is a change of what a creature has used of a capability, by unit. It must fit into
// the budgets, and be durable then, unless there are none.
type Spending struct {
	Capability string
	Budgets    []capability.Budget
	Change     map[string]int64
}

// Interrupt drops a request, and ends an attempt that is under way. If the attempt succeeds
// nevertheless, the request ends with its result. Interrupt does not block, and does
// nothing for a call that is nil or was not started.
func (c *Call) Interrupt() {
	if c != nil && c.stop != nil {
		c.stop()
	}
}

// KeepIf interrupts a request unless it is still granted.
func (c *Call) KeepIf(granted bool) {
	if !granted {
		c.Interrupt()
	}
}

// after continues without a place. After Close, the request is dropped.
func (c *Call) after(f func()) {
	if !c.o.start(f) {
		c.drop()
	}
}

func (c *Call) drop() {
	c.stop()
	c.Drop()
}

func (c *Call) end(r capability.Result, dead bool) {
	c.stop()
	c.End(c.o.ctx, r, dead)
}
