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
	var h map[string]string
	if kind != abi.KindMessage {
		h = journal.DecodeHeaders(m.Headers)
	}
	status, _ := strconv.ParseInt(h[HeaderStatus], 10, 64)
	deadline, _ := strconv.ParseInt(h[HeaderDeadline], 10, 64)
	source := ""
	if kind == abi.KindOutput {
		source = m.SenderName
	}
	return journal.JSON(struct {
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
	}{
		kind.String(), direct, m.Seq, attempt, m.Time,
		h[HeaderTimer], h[HeaderTag], h[HeaderCode], status, deadline, source, h[HeaderWire], revision,
	})
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
