package deploy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/topology"
)

// MaxNameBytes bounds the names of creatures and channels: every status and many events
// repeat them.
const MaxNameBytes = 256

// CheckName refuses names that cannot be displayed or typed.
func CheckName(op, what, name string) error {
	switch {
	case name == "":
		return errtext.Invalid(op, "a "+what+" needs a name", "give it one")
	case len(name) > MaxNameBytes:
		return errtext.Invalid(op, fmt.Sprintf("the name of a %s has %d bytes", what, len(name)), fmt.Sprintf("use %d at most", MaxNameBytes))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, abi.Deceptive):
		return errtext.Invalid(op, fmt.Sprintf("the name %q of a %s is not printable text", name, what), "use UTF-8 without control, formatting and zero-width characters")
	}
	return nil
}

// MaxDescription is the size of the longest description of a creature or species, in
// bytes. Most readers get only the beginning, as in awareness documents.
const MaxDescription = 4096

// CheckDescription refuses descriptions that are not text, or too long to be kept for
// every creature.
func CheckDescription(op, text string) error {
	switch {
	case len(text) > MaxDescription:
		return errtext.Invalid(op, fmt.Sprintf("the description has %d bytes", len(text)), fmt.Sprintf("use %d at most", MaxDescription))
	case !utf8.ValidString(text):
		return errtext.Invalid(op, "the description is not UTF-8", "use text")
	}
	return nil
}

// CheckAlias refuses aliases that cannot be displayed or typed. An empty alias is valid:
// the engine chooses one.
func CheckAlias(op, alias string) error {
	if alias == "" {
		return nil
	}
	return CheckName(op, "alias", alias)
}

// CheckOp checks the names and aliases in an operation of the topology.
func CheckOp(op topology.Op) error {
	switch op := op.(type) {
	case topology.Connect:
		if op.Channel == "" && op.Name != "" {
			if err := CheckName("connect", "channel", op.Name); err != nil {
				return err
			}
		}
		return CheckAlias("connect", op.Alias)
	case topology.SetEdge:
		return CheckAlias("set_"+op.Direction.String(), op.Alias)
	case topology.SetNames:
		for _, n := range op.Names {
			if err := CheckName("set_names", "creature", n.Name); err != nil {
				return err
			}
		}
		for _, n := range op.Channels {
			if err := CheckName("set_names", "channel", n.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckNames checks the names in a deployment. Names of its creatures are checked when
// the creatures are prepared.
func (d *Deployment) CheckNames() error {
	if d.Name != "" {
		if err := CheckName("apply", "deployment", d.Name); err != nil {
			return err
		}
	}
	for i := range d.Channels {
		if err := CheckName("apply", "channel", d.Channels[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// The largest values that can be requested. A larger one is a mistake: it could never be
// reached, or would not limit anything.
const (
	maxMemory  = 4 << 30 // all that a 32-bit memory can have
	maxMailbox = 1 << 20
	maxTable   = 1 << 26
	maxStack   = 32 << 20 // wazero's own stack limit is not much higher
)

// MaxLimits are the largest limits that can be requested; 0 means unbounded.
var MaxLimits = abi.Limits{Memory: maxMemory, Message: MaxMessage, Stack: maxStack, Table: maxTable, Mailbox: maxMailbox}

// CheckLimits refuses limits that make no sense.
func CheckLimits(l *abi.Limits) error {
	for _, f := range []struct {
		name  string
		value int64
		max   int64 // 0: none
	}{
		{"memory", l.Memory, maxMemory}, {"fuel", l.Fuel, 0}, {"deadline", int64(l.Deadline), 0}, {"message", l.Message, MaxMessage},
		{"sends", int64(l.Sends), 0}, {"send_bytes", l.SendBytes, 0}, {"output", l.Output, 0}, {"log_lines", int64(l.LogLines), 0},
		{"log_bytes", l.LogBytes, 0}, {"state_key", l.StateKey, 0}, {"state_value", l.StateValue, 0}, {"state", l.State, 0},
		{"state_writes", int64(l.StateWrites), 0}, {"calls", l.Calls, 0}, {"handles", int64(l.Handles), 0}, {"timers", int64(l.Timers), 0},
		{"requests", int64(l.Requests), 0}, {"timer_bytes", l.TimerBytes, 0}, {"stack", l.Stack, maxStack},
		{"tools", int64(l.Tools), 0}, {"table", l.Table, maxTable}, {"mailbox", int64(l.Mailbox), maxMailbox},
		{"store_rate", l.StoreRate, 0}, {"timer_rate", int64(l.TimerRate), 0},
	} {
		switch {
		case f.value < 0:
			return errtext.Invalid("add_creature", fmt.Sprintf("the limit %s is negative", f.name), "use 0 for the default, or more")
		case f.max != 0 && f.value > f.max:
			return errtext.Invalid("add_creature", fmt.Sprintf("the limit %s is %d", f.name, f.value), fmt.Sprintf("use %d at most", f.max))
		}
	}
	return nil
}

// MaxMessage is the largest size of a message from outside in bytes, headers included.
const MaxMessage = 16 << 20
