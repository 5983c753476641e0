// Package unhurried gives the policies of tests more time than those of users have. The
// default timeout is wall-clock time, which a busy machine may need for anything.
package unhurried

import "time"

// Policies is the timeout of policies that have the default; 0, as in every program but
// tests, changes nothing. TestMain sets it, before there are policies.
var Policies time.Duration

// Plenty is enough for a policy that ends, however busy the machine is.
const Plenty = time.Minute
