package draft

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"

	"github.com/seed47132306/terrarium/engine/journal"
)

// IDBytes is how many bytes of randomness an id has.
const IDBytes = 10

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// FormatID makes an id from a letter for the kind and [IDBytes] random bytes,
// so that it is unique across engines.
func FormatID(prefix string, random []byte) string {
	return prefix + idEncoding.EncodeToString(random)
}

// DerivedIDs makes the ids of the creatures, channels and wires that a turn
// adds. They derive from the creature, its delivery and the number of the call
// in the turn, refused calls included. So they can be returned before anything
// exists, and are the same when the turn is run again.
type DerivedIDs struct {
	key  [sha256.Size]byte
	call uint64
	n    uint64
}

// Source is the input from which the ids of a turn derive.
type Source struct {
	Creature journal.CreatureID
	Message  journal.EventID
	Channel  journal.ChannelID
	Seq      uint64 // of the message, in the channel
	Kind     byte   // of the delivery
	Call     string // replaces the delivery of a turn that has none
}

// NewDerivedIDs makes the ids of a turn.
func NewDerivedIDs(s Source) *DerivedIDs {
	h := sha256.New()
	h.Write([]byte(s.Creature))
	h.Write(s.Message.Origin[:])
	var rest [24]byte
	binary.LittleEndian.PutUint64(rest[:], s.Message.Seq)
	binary.LittleEndian.PutUint64(rest[8:], s.Seq)
	rest[16] = s.Kind
	h.Write(rest[:])
	h.Write([]byte(s.Channel))
	h.Write([]byte(s.Call))
	d := &DerivedIDs{}
	h.Sum(d.key[:0])
	return d
}

// Begin switches to the ids of a call.
func (d *DerivedIDs) Begin(call int) { d.call, d.n = uint64(call), 0 }

// Stage switches to the ids made when a call is staged, however often: they do
// not depend on the ids used to make the operation.
func (d *DerivedIDs) Stage(call int) { d.call, d.n = uint64(call), 1<<32 }

func (d *DerivedIDs) id(prefix string) string {
	h := sha256.New()
	h.Write(d.key[:])
	var rest [16]byte
	binary.LittleEndian.PutUint64(rest[:], d.call)
	binary.LittleEndian.PutUint64(rest[8:], d.n)
	h.Write(rest[:])
	h.Write([]byte(prefix))
	d.n++
	return FormatID(prefix, h.Sum(nil)[:IDBytes])
}

// NewGraph implements [IDs].
func (d *DerivedIDs) NewGraph() journal.GraphID { return journal.GraphID(d.id("g")) }

// NewChannel implements [IDs].
func (d *DerivedIDs) NewChannel() journal.ChannelID { return journal.ChannelID(d.id("h")) }

// NewMessage returns the id of a message that a call sends.
func (d *DerivedIDs) NewMessage() string { return d.id("m") }

// NewCreature implements [IDs].
func (d *DerivedIDs) NewCreature() journal.CreatureID { return journal.CreatureID(d.id("c")) }

// NewWire implements [IDs].
func (d *DerivedIDs) NewWire() journal.WireID { return journal.WireID(d.id("w")) }
