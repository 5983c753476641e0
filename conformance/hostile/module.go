package hostile

import (
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// Module is one member of the gallery.
type Module struct {
	Name string
	// Attacks says what is attacked, and how.
	Attacks string
	// Build assembles the module. It returns the same bytes every time.
	Build func() []byte
	// Config is the configuration of the creature, in JSON.
	Config string
	// Ends lists the ways in which the module must end, each under its own
	// limits. There is at least one.
	Ends []End
	// Harmless assembles the same shape at a size at which it runs and its
	// turn succeeds; nil unless the module is refused for its size.
	Harmless func() []byte
	// Peak is how much additional memory the process may use, in bytes, until
	// the module has ended; zero means [DefaultPeak].
	Peak int64
	// Unwired means that the creature has no channel to send on.
	Unwired bool
	// Privileged means that the creature may use the group tools.
	Privileged bool
	// Lasts is for how many rounds of the neighbours the creature is left
	// alone after its turn, to see what it does; zero means a few.
	Lasts int
}

// DefaultPeak is how much additional memory a process may use while a module
// attacks, in bytes: twice the default limit memory, so that the garbage
// collector may be late, and as much again for compiling.
const DefaultPeak = 256 << 20

// End is how a module must end under certain limits.
type End struct {
	// By distinguishes the ends of a module; empty if there is only one.
	By     string
	Limits abi.Limits
	// In is the operation that returns the error: InCompile, InInstantiate or
	// a function of the guest.
	In string
	// Code is the code of the error, or [abi.OK] if the attack has no effect
	// and the turn succeeds.
	Code abi.Code
	// Says lists words that the error must contain: the name of the limit, and
	// anything else the operator needs to find the fault.
	Says []string
}

// The operations that refuse a module before any of its code runs.
const (
	InCompile     = "compile"
	InInstantiate = "instantiate"
	inStart       = "start" // the start function of the module
)

// Modules returns the gallery, in the order of its chapters. The caller owns
// the slice.
func Modules() []Module {
	return slices.Concat(refused(), oversized(), memories(), debugInfo(), runaways(), floods(), toolAttacks(), amplifiers(), storms(), arguments(), scripts())
}

// once returns the ends of a module with a single end.
func once(in string, code abi.Code, says ...string) []End {
	return []End{{In: in, Code: code, Says: says}}
}

// comesToNothing returns the end of an attack without effect: the guest
// detects the refusal, and its turn succeeds.
func comesToNothing() []End { return once(abi.ExportHandle, abi.OK) }

// Limits for guests that run until they are stopped. Each is either far below
// its default, so that the gallery is fast, or so far above that the other
// limit must stop the guest.
const (
	littleFuel = 20_000_000
	littleTime = 100 * time.Millisecond
	muchFuel   = 1 << 60
	muchTime   = time.Hour
)

// stopped returns the ends of a guest that does not return: by fuel if there
// is much time, and by the deadline if there is much fuel.
func stopped(in string) []End {
	return []End{
		{
			By: "fuel", Limits: abi.Limits{Fuel: littleFuel, Deadline: muchTime},
			In: in, Code: abi.OutOfFuel, Says: []string{"limit fuel"},
		},
		{
			By: "deadline", Limits: abi.Limits{Fuel: muchFuel, Deadline: littleTime},
			In: in, Code: abi.Deadline, Says: []string{"limit deadline"},
		},
	}
}
