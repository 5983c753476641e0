package message

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Seed is the random seed of a decision of a policy. It differs for each delivery, for
// each creature that gets the delivery, and for each thing that the creature does in the
// turn. It stays the same when the same thing is judged again.
func Seed(delivery journal.EventID, c journal.CreatureID, what uint64) uint64 {
	h := fnv.New64a()
	h.Write(delivery.Origin[:])
	h.Write(binary.LittleEndian.AppendUint64(nil, delivery.Seq))
	h.Write([]byte(c))
	h.Write(binary.LittleEndian.AppendUint64(nil, what))
	return h.Sum64()
}

// OutsideSeed is the random seed of the policies that judge a message from outside.
func OutsideSeed(ch journal.ChannelID, producer string, numbers ...uint64) uint64 {
	h := fnv.New64a()
	h.Write([]byte(ch))
	h.Write([]byte(producer))
	for _, n := range numbers {
		h.Write(binary.LittleEndian.AppendUint64(nil, n))
	}
	return h.Sum64()
}
