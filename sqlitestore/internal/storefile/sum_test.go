package storefile

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
)

// TestDigestIsThatOfTheFormat compares digests with the definition of what is in files.
func TestDigestIsThatOfTheFormat(t *testing.T) {
	id := func(n byte) journal.EventID {
		return journal.EventID{Origin: journal.Origin{n, 15: n}, Seq: uint64(n) << 40}
	}
	for _, e := range []journal.Event{
		{},
		{ID: id(1), Time: -5, Kind: 2, Graph: "g", Creature: "c", Turn: id(3), Attempt: 1, Channel: "ch", Seq: 7, Headers: []byte("h"), Payload: []byte("p"), Cause: id(9)},
		{ID: id(1), Graph: journal.GraphID(strings.Repeat("long", 400)), Payload: make([]byte, 5000)},
		{ID: id(2)}, // after a longer one
	} {
		var b []byte
		b = append(b, e.ID.Origin[:]...)
		b = binary.LittleEndian.AppendUint64(append(b, e.Turn.Origin[:]...), e.Turn.Seq)
		b = binary.LittleEndian.AppendUint64(append(b, e.Cause.Origin[:]...), e.Cause.Seq)
		for _, n := range []int{int(e.ID.Seq), int(e.Time), int(e.Kind), e.Attempt, int(e.Seq), len(e.Graph), len(e.Creature), len(e.Channel), len(e.Headers)} {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
		b = append(append(append(b, e.Graph...), e.Creature...), e.Channel...)
		want := crc32.Checksum(append(append(b, e.Headers...), e.Payload...), castagnoli)
		if got := EventDigest(&e); got != want {
			t.Errorf("the digest of %+v is %x, not %x", e.ID, got, want)
		}
	}
}

func TestChainIsTheChecksumOfBothHalves(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		before, digest := random.Uint32(), random.Uint32()
		b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, before), digest)
		if got, want := ChainOn(before, digest), max(crc32.Checksum(b, castagnoli), 1); got != want {
			t.Fatalf("the chain is %x, not %x", got, want)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	e := journal.Event{ID: journal.EventID{Seq: 1}, Kind: 1, Graph: "g_0123456789abcdef", Creature: "c_0123456789abcdef", Channel: "ch_0123456789abcdef", Payload: make([]byte, 80)}
	var s Summer
	chain := uint32(1)
	b.ReportAllocs()
	for b.Loop() {
		chain = s.Chain(chain, s.Digest(&e))
	}
}
