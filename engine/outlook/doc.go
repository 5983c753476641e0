// Package outlook has the awareness document: what a creature can know about
// itself and its surroundings, as JSON and as Markdown. Both are bounded, and
// names in the text cannot pass for anything else.
package outlook
