// Package translation is the contract between package host and creatures that were
// translated to Go when a program was built. terrarium translate makes such translations;
// programs pass them to the host, and do not use this package otherwise.
//
// A translation is made of the metered form of a module. So it counts fuel and stack as the
// module does in any other engine, and the host gives it the same memory, limits and
// functions. The host runs it in place of a module only if the hash of the module's metered
// form is that of the translation.
package translation

// Code is a module that was translated to Go. It never changes.
type Code struct {
	// Name says which creature it is, for people.
	Name string
	// SHA256 is the hash of the metered module, in lower-case hex.
	SHA256 string
	// Floats reports whether the module calculates with floating-point numbers. It is then
	// used only on some processors, see [Code.Exact].
	Floats bool
	// New makes an instance. It runs no code of the guest. It is a function of the generated
	// package, in whose functions the host looks for the guest when it traps.
	New func(Host) Instance
}

// Exact reports whether all results of the translation are allowed by WebAssembly, on a
// processor that is named as in runtime.GOARCH. On others than amd64 and arm64, the bits
// of a result that is not a number may be bits that WebAssembly does not allow.
func (c *Code) Exact(arch string) bool {
	return !c.Floats || arch == "amd64" || arch == "arm64"
}

// Instance is an instance of a translation. At most one of its functions runs at a time.
type Instance interface {
	// Function returns the exported function of that name, or nil. The function takes its
	// arguments from the stack and leaves its result there, as 64-bit values. It panics to
	// trap, with a text or a runtime error.
	Function(name string) func(stack []uint64)
	// Global returns a pointer to the exported global of that name, of the type *int32,
	// *int64, *float32 or *float64, or nil.
	Global(name string) any
}

// Host is what an instance gets from the host.
type Host interface {
	// Call calls an imported function by its index, with its arguments on the stack, on
	// which it leaves its result. It panics to end the guest.
	Call(function int, stack []uint64)
	// Memory returns a pointer to the linear memory, which stays the same while the memory
	// grows.
	Memory() *[]byte
	// Grow makes the memory larger by some pages of 64 KiB, and returns its former size in
	// pages, or -1 if that is refused.
	Grow(pages int64) int64
}
