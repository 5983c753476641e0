package journal

import "bytes"

// DecodeStateEvent reads the payload of an event of the kind state.
func DecodeStateEvent(payload []byte) (key string, value []byte, deleted bool) {
	k, rest, ok := bytes.Cut(payload, []byte{0})
	if !ok || len(rest) == 0 || rest[0] == '-' {
		return string(k), nil, true
	}
	return string(k), rest[1:], false
}
