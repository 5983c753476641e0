package message

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Detail is the JSON of the source detail, for a delivery of m. revision is that
// of the awareness document, if the delivery notifies of one.
func (m *Message) Detail(kind abi.Kind, direct bool, attempt int, revision uint64) []byte {
	d := detail{Kind: kind.String(), Direct: direct, Seq: m.Seq, Attempt: attempt, Time: m.Time, Revision: revision}
	if kind == abi.KindOutput {
		d.Source = m.SenderName
	}
	if kind != abi.KindMessage {
		for name, value := range journal.EachHeader(m.Headers) {
			d.take(name, value)
		}
	}
	return journal.JSON(&d)
}

// detail is the JSON of the source detail.
type detail struct {
	Kind       string `json:"kind"`
	Direct     bool   `json:"direct"`
	Seq        uint64 `json:"seq,omitempty"`
	Attempt    int    `json:"attempt"`
	Time       int64  `json:"time"`
	Name       string `json:"name,omitempty"`
	Tag        string `json:"tag,omitempty"`
	Code       string `json:"code,omitempty"`
	Status     int64  `json:"status,omitempty"`
	DeadlineMS int64  `json:"deadline_ms,omitempty"`
	Source     string `json:"source,omitempty"`
	Wire       string `json:"wire,omitempty"`
	Revision   uint64 `json:"revision,omitempty"`
}

// take notes a header of the engine.
func (d *detail) take(name, value []byte) {
	switch string(name) {
	case HeaderTimer:
		d.Name = string(value)
	case HeaderTag:
		d.Tag = string(value)
	case HeaderCode:
		d.Code = string(value)
	case HeaderStatus:
		d.Status, _ = strconv.ParseInt(string(value), 10, 64)
	case HeaderDeadline:
		d.DeadlineMS, _ = strconv.ParseInt(string(value), 10, 64)
	case HeaderWire:
		d.Wire = string(value)
	}
}

// Random returns the source of random numbers of a creature that handles m. It
// differs for each listener, and is the same when the turn is run again.
func (m *Message) Random(c journal.CreatureID, kind abi.Kind) *rand.ChaCha8 {
	var seed [32]byte
	copy(seed[:], m.ID.Origin[:])
	binary.LittleEndian.PutUint64(seed[16:], m.ID.Seq)
	h := fnv.New64a()
	h.Write([]byte(c))
	binary.LittleEndian.PutUint64(seed[24:], h.Sum64()+uint64(kind))
	return rand.NewChaCha8(seed)
}

// Result is the delivery that answers a request of a creature: with a payload,
// which is copied, or with the text of an error.
func Result(row *journal.RequestRow, code abi.Code, text string, payload []byte, more map[string]string) *Message {
	all := map[string]string{
		HeaderTag: strconv.FormatInt(row.Tag, 10), HeaderCode: code.String(), HeaderRequest: row.ID.String(),
	}
	maps.Copy(all, more)
	headers, _ := journal.EncodeHeaders(all)
	payload = slices.Clone(payload)
	if code != abi.OK {
		payload = []byte(text)
	}
	m := New(payload, headers)
	m.Kind = abi.KindResult
	return m
}
