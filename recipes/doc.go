// Package recipes turns a recipe into a deployment.
//
// A recipe is HCL: a file, or a folder of files, named *.hcl or *.hcl.json. It declares
// channels, creatures and their wiring, and refers to things by traversals such as
// channel.tasks, never by strings, so that every reference can be checked. [Load] reads
// and evaluates a recipe and inspects its modules. The result is a [deploy.Deployment],
// or a list of [Diagnostics] with all mistakes, not only the first one.
//
// Loading has three steps. First, files are measured and parsed: a text that nests too
// deeply would overflow the parser's stack and end the process. Second, the blocks are
// collected, in any order. Third, they are evaluated. An expression is evaluated after
// the things that it refers to, each of them once. Nothing is reported about an
// expression that depends on an error, so that each mistake is reported once.
//
// The package prints nothing by itself; [WriteText] and [WriteJSON] render diagnostics
// for people and for programs.
package recipes
