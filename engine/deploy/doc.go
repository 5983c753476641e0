// Package deploy describes what should exist: deployments, with the specifications of
// their creatures, species, channels and wires, and the interfaces that judge changes
// ([Policy]) and outputs ([Predicate]).
//
// A [Deployment] is plain data. The engine compares it with what runs. Recipes are one
// way to make it.
package deploy
