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
// A creature handles one delivery at a time, and the effects of a [Turn] apply
// together when the handler returns nil; none applies when it returns an error
// or panics. Data that must outlast a turn belongs in the state: package
// variables are a cache that may be lost between any two turns.
//
// The package depends only on the contract, abi/README.md. It also compiles
// natively, where a handler runs against any [Host]; package terrariumtest has
// one for unit tests.
package terrarium
