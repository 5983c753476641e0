// Package pagetest tests the page of terrarium serve in a real browser. Its tests need
// chromium; without one they are skipped, or fail if TERRARIUM_BROWSER is set. With
// TERRARIUM_SHOTS=DIR they write the pictures that the documentation shows.
package pagetest
