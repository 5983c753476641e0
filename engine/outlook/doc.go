// Package outlook defines the awareness document: what a creature can know about itself
// and its surroundings, as JSON and as Markdown. Both are bounded, and names in the
// text cannot be mistaken for other parts of it.
package outlook
