// Package bind executes prepared statements with rows of values that are not boxed.
//
// The driver takes each value as a driver.Value, and calls C for each. Here values are
// appended to [Cells], and a [Statement] is executed with all of them in one call. Where
// the structures of the driver's package are as expected, that call goes to SQLite
// directly; otherwise, values go through the driver, which only takes longer.
//
// With the same access, [Defend] restricts a connection as the driver cannot.
package bind
