// Package pagetest tests the page of terrarium serve in a real browser. Its tests need
// chromium, so that only make test-page runs them, with TERRARIUM_BROWSER set. With
// TERRARIUM_SHOTS=DIR they write the pictures that the documentation shows.
package pagetest
