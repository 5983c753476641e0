package operations

import (
	"encoding/json"
	"errors"
	"math"
	"time"
)

// Duration is a duration in JSON: a string such as "200ms", or a number of seconds.
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var seconds float64
	if json.Unmarshal(b, &seconds) == nil {
		ns := seconds * float64(time.Second)
		if ns < 0 || ns >= math.MaxInt64 {
			return errDuration
		}
		*d = Duration(ns)
		return nil
	}
	var text string
	if json.Unmarshal(b, &text) == nil {
		if v, err := time.ParseDuration(text); err == nil && v >= 0 {
			*d = Duration(v)
			return nil
		}
	}
	return errDuration
}

var errDuration = errors.New(`a duration is a string such as "200ms", or a number of seconds, and not negative`)
