package engine

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/seed47132306/terrarium/engine/journal"
)

// derivedIDs makes the ids of what a turn adds to its graph. They derive from the
// creature, its delivery and the number of the call in the turn, refused calls
// counted, so that they can be answered before anything exists, and are the same when
// the turn is run again.
type derivedIDs struct {
	key  [sha256.Size]byte
	call uint64
	n    uint64
}

func newDerivedIDs(t *turn) *derivedIDs {
	m := t.d.msg
	h := sha256.New()
	h.Write([]byte(t.c.id))
	h.Write(m.id.Origin[:])
	var rest [24]byte
	binary.LittleEndian.PutUint64(rest[:], m.id.Seq)
	binary.LittleEndian.PutUint64(rest[8:], m.seq)
	rest[16] = byte(t.kind)
	h.Write(rest[:])
	h.Write([]byte(m.channel))
	if t.kind == kindTool {
		h.Write([]byte(m.senderName))
	}
	d := &derivedIDs{}
	h.Sum(d.key[:0])
	return d
}

// begin goes over to the ids of a call.
func (d *derivedIDs) begin(call int) { d.call, d.n = uint64(call), 0 }

// stage goes over to the ids of what a call makes when it is staged, however often
// that is: they do not depend on those that were taken to put the operation together.
func (d *derivedIDs) stage(call int) { d.call, d.n = uint64(call), 1<<32 }

func (d *derivedIDs) id(prefix string) string {
	h := sha256.New()
	h.Write(d.key[:])
	var rest [16]byte
	binary.LittleEndian.PutUint64(rest[:], d.call)
	binary.LittleEndian.PutUint64(rest[8:], d.n)
	h.Write(rest[:])
	h.Write([]byte(prefix))
	d.n++
	return prefix + idEncoding.EncodeToString(h.Sum(nil)[:10])
}

// NewGraph implements topology.IDs.
func (d *derivedIDs) NewGraph() journal.GraphID { return journal.GraphID(d.id("g")) }

// NewChannel implements topology.IDs.
func (d *derivedIDs) NewChannel() journal.ChannelID { return journal.ChannelID(d.id("h")) }

func (d *derivedIDs) newCreature() journal.CreatureID { return journal.CreatureID(d.id("c")) }
