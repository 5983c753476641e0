// Package native has the creatures that ship with terrarium as Go code, for
// host.Options.Translations and terrarium.Options.Translations. Up to a limit stack of
// 16 MiB, or 4 MiB on 32-bit machines, they behave as the modules in package plugins do, and
// are faster. make natives translates them from the
// modules, and make natives-check checks that they are current.
package native
