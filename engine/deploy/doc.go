// Package deploy says what is to exist: deployments, with the specifications of their
// creatures, species, channels and wires, and the interfaces of what judges changes
// ([Policy]) and outputs ([Predicate]).
//
// A [Deployment] is plain data that the engine compares with what runs. Recipes are one
// way to make it.
package deploy
