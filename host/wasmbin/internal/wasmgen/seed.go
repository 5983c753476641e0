package wasmgen

import "math/rand/v2"

// Seeded returns a string of decisions for repeatable runs. Its lengths make
// modules large enough to be unusual and small enough to run many.
func Seeded(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0x7761736d))
	data := make([]byte, 48+r.IntN(900))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}
