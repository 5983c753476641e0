package wasmgen

import "math/rand/v2"

// Seeded is a string of decisions for runs that are to be repeated. Lengths are
// those at which modules are large enough to be odd and small enough to be many.
func Seeded(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0x7761736d))
	data := make([]byte, 48+r.IntN(900))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}
