// Package archtest tests terrarium on other processors: programs as make dist builds them,
// in an emulator, beside the program for this machine. make test-arch runs it.
package archtest
