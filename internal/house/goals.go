package main

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// The goals, as measured of one package or type.
const (
	goalLines   = 14_000
	goalShare   = 55 // per cent, in packages of more than knotted lines
	goalMethods = 90
	goalFields  = 30
	goalTypes   = 60 // exported by the engine
	knotted     = 3_000
)

// excess is a measure that is above its goal.
type excess struct {
	measure, of string
	value, goal int
}

func (x excess) String() string { return fmt.Sprintf("%s %s", x.measure, x.of) }

// above lists what is above the goals.
func above(list []*figures) (out []excess) {
	add := func(measure, of string, value, goal int) {
		if value > goal {
			out = append(out, excess{measure, of, value, goal})
		}
	}
	for _, f := range list {
		name := room(f.path)
		add("lines", name, f.lines, goalLines)
		if f.lines > knotted {
			// The ceiling is of lines, so that what leaves the package does not seem to make
			// the knot larger.
			add("knot", name, f.knot.lines, f.declared*goalShare/100)
		}
		for of, n := range sorted(f.methods) {
			add("methods", name+"."+of, n, goalMethods)
		}
		for of, n := range sorted(f.fields) {
			add("fields", name+"."+of, n, goalFields)
		}
		if name == "engine" {
			add("types", name, f.exported, goalTypes)
		}
		add("locks", name, f.locks, 0)
		add("mutation-locks", name, f.mutationLocks, 0)
		add("long", name, f.long, 0)
	}
	return out
}

// sorted goes through numbers in the order of their names.
func sorted(numbers map[string]int) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, name := range slices.Sorted(maps.Keys(numbers)) {
			if !yield(name, numbers[name]) {
				return
			}
		}
	}
}
