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
	// Build assembles the module. It gives the same bytes every time.
	Build func() []byte
	// Ends are the ways in which it has to end, each with the limits that the
	// creature has meanwhile. There is one at least.
	Ends []End
	// Harmless assembles the same shape at a size at which it runs and its turn
	// succeeds; nil unless it is the size that is refused.
	Harmless func() []byte
	// Peak is how much memory the whole process may need beyond what it had
	// before, in bytes, until the module has ended; zero means [DefaultPeak].
	Peak int64
	// Unwired leaves out the channel that it could send on.
	Unwired bool
	// Privileged makes it one that may use the group tools.
	Privileged bool
	// Lasts is how many rounds of the neighbours it is left alone after its turn,
	// for what it does then; zero means a few.
	Lasts int
}

// DefaultPeak is how much more memory a process may need while a module
// attacks, in bytes: the default limit memory, twice, so that the collector of
// garbage may come late, and as much again for compiling.
const DefaultPeak = 256 << 20

// End is how a module has to end under certain limits.
type End struct {
	// By tells the ends of one module apart; empty when there is one.
	By     string
	Limits abi.Limits
	// In is the operation that answers the error: InCompile, InInstantiate or a
	// function of the guest.
	In string
	// Code is what the operator gets; [abi.OK] when the attack comes to nothing
	// and the turn succeeds.
	Code abi.Code
	// Says are words that the error has to contain: the name of the limit, and
	// what else the operator needs to find the fault.
	Says []string
}

// The operations that refuse a module before any of it runs.
const (
	InCompile     = "compile"
	InInstantiate = "instantiate"
	inStart       = "start" // the start function of the module
)

// Modules returns the gallery, in the order of its chapters. The slice is the
// caller's.
func Modules() []Module {
	return slices.Concat(refused(), oversized(), memories(), runaways(), floods(), toolAttacks(), amplifiers(), storms(), arguments())
}

// once is the list of ends of a module that has one.
func once(in string, code abi.Code, says ...string) []End {
	return []End{{In: in, Code: code, Says: says}}
}

// comesToNothing is the end of an attack that changes nothing: the guest finds
// out that it was refused, and its turn succeeds.
func comesToNothing() []End { return once(abi.ExportHandle, abi.OK) }

// Limits for guests that run until they are stopped. Either one is far below
// its default, so that the gallery does not take long, or so far above that the
// other one has to stop the guest.
const (
	littleFuel = 20_000_000
	littleTime = 100 * time.Millisecond
	muchFuel   = 1 << 60
	muchTime   = time.Hour
)

// stopped is how a guest ends that does not come back: by fuel when there is
// much time, and by the deadline when there is much fuel.
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
