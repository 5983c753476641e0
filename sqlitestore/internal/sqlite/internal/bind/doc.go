// Package bind executes prepared statements with rows of values that are not boxed.
//
// The driver takes each value as a driver.Value and makes a call to C for each. This
// package appends values to [Cells], and executes a [Statement] with all of them in one
// call. If the types of the driver are as expected, this call goes to SQLite directly;
// otherwise the values go through the driver, which takes longer.
//
// [Defend] uses the same access to restrict a connection in a way that the driver cannot.
package bind
