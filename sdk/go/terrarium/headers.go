package terrarium

import "bytes"

// A Header is one header of a message. A name is not empty, and neither name nor
// value contains NUL.
type Header struct {
	Name, Value string
}

// appendHeaders writes name NUL value NUL for each.
func appendHeaders(b []byte, headers []Header) []byte {
	for _, h := range headers {
		b = append(b, h.Name...)
		b = append(b, 0)
		b = append(b, h.Value...)
		b = append(b, 0)
	}
	return b
}

func decodeHeaders(b []byte) []Header {
	var headers []Header
	for len(b) > 0 {
		name, rest, ok := bytes.Cut(b, []byte{0})
		if !ok {
			break
		}
		value, rest, ok := bytes.Cut(rest, []byte{0})
		if !ok {
			break
		}
		headers = append(headers, Header{string(name), string(value)})
		b = rest
	}
	return headers
}
