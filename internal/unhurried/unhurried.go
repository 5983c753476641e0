// Package unhurried gives policies in tests more time than they have elsewhere. The
// default timeout is wall-clock time, so a busy machine may exceed it in any step.
package unhurried

import "time"

// Policies is the timeout of policies that have the default; 0, as in every program but
// tests, changes nothing. TestMain sets it, before there are policies.
var Policies time.Duration

// Plenty is enough for a policy that ends, however busy the machine is.
const Plenty = time.Minute
