// Package recipes turns a recipe into a deployment.
//
// A recipe is HCL: a file, or a folder of files, named *.hcl or *.hcl.json. It
// says what shall exist (channels, creatures and their wiring) and refers to
// things by traversals such as channel.tasks, never by strings, so that every
// reference can be checked. [Load] reads and evaluates a recipe and looks into
// the modules it names; the result is an [deploy.Deployment], or a list of
// [Diagnostics] that tells everything that is wrong, not only the first thing.
//
// Loading has three steps. Files are measured, then parsed: a text that nests
// too deeply would overflow the parser's stack and end the process. Then the
// blocks are taken in, whatever their order. Then they are evaluated: whatever
// an expression refers to is evaluated first, once, and something that is in
// error makes what depends on it silent, so that one mistake is told once.
//
// The package writes nothing by itself; [WriteText] and [WriteJSON] render
// diagnostics for people and for machines.
package recipes
