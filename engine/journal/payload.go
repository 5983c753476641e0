package journal

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Payload is the payload of a message in the arguments of a tool: a JSON
// string, or {"base64": "…"} for bytes that are not text.
type Payload []byte

// UnmarshalJSON reads either form.
func (p *Payload) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*p = Payload(text)
		return nil
	}
	var other struct {
		Base64 *string `json:"base64"`
	}
	if err := json.Unmarshal(b, &other); err != nil || other.Base64 == nil {
		return fmt.Errorf(`a payload is a string or {"base64": "…"}`)
	}
	bytes, err := base64.StdEncoding.DecodeString(*other.Base64)
	*p = bytes
	return err
}
