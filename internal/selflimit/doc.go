// Package selflimit bounds what the process that calls it can take, where the operating
// system can enforce it: on Linux. It is a second line of defence. Callers also watch the
// heap or end the process from outside, so an error is ignored. It also reports a limit that
// others have set.
package selflimit
