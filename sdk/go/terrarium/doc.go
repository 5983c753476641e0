// Package terrarium is for writing creatures in Go, with the standard
// toolchain: GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared.
//
//	package main
//
//	import "github.com/seed47132306/terrarium/sdk/go/terrarium"
//
//	func init() {
//		terrarium.Register(terrarium.Creature{Handle: func(t *terrarium.Turn) error {
//			_, err := t.SendAll(t.Payload())
//			return err
//		}})
//	}
//
//	func main() {}
//
// A creature handles one delivery at a time, and everything it does in a [Turn]
// takes effect together when the handler returns nil; nothing of it does when it
// returns an error or panics. What must outlast a turn goes into the state:
// package variables are a cache that may vanish between any two turns.
//
// The package depends on nothing but the contract, abi/README.md, and also
// compiles for the machine it is written on, where a handler runs against any
// [Host]; package terrariumtest has one for unit tests.
package terrarium
