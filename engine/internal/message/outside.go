package message

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// OutsideHeaders encodes headers from outside, or refuses them on behalf of an
// operation.
func OutsideHeaders(op string, h map[string]string) ([]byte, error) {
	headers, ok := journal.EncodeHeaders(h)
	switch {
	case !ok:
		return nil, errtext.Invalid("send", "a header has no name, or contains NUL", "use other names and values")
	case journal.HasReservedHeader(headers):
		return nil, journal.ReservedHeaderError(op)
	}
	return headers, nil
}

// RequestHeaders appends the headers of a request from outside to b: those of
// the caller and the deadline.
func RequestHeaders(b []byte, h map[string]string, deadline time.Duration) ([]byte, error) {
	ms := deadline.Milliseconds()
	if len(h) == 0 {
		b = append(append(slices.Grow(b, len(HeaderDeadline)+22), HeaderDeadline...), 0)
		return append(strconv.AppendInt(b, ms, 10), 0), nil
	}
	if _, err := OutsideHeaders("request", h); err != nil {
		return nil, err
	}
	all := maps.Clone(h)
	all[HeaderDeadline] = strconv.FormatInt(ms, 10)
	headers, _ := journal.EncodeHeaders(all)
	return append(b, headers...), nil
}
