package terrarium

import (
	"errors"
	"strconv"
	"strings"
)

// StateGet returns a value of the state. The error of a missing key is
// [NotFound].
func (t *Turn) StateGet(key string) ([]byte, error) {
	n := t.host.StateGet(key, nil)
	if err := t.check("state_get", n); err != nil {
		return nil, err
	}
	return t.result(n), nil
}

// StateSet writes a value of the state. A key is UTF-8, not empty and without
// NUL.
func (t *Turn) StateSet(key string, value []byte) error {
	return t.check("state_set", t.host.StateSet(key, value))
}

// StateDelete deletes a value of the state and reports whether there was one.
func (t *Turn) StateDelete(key string) (bool, error) {
	n := t.host.StateDelete(key)
	return n > 0, t.check("state_delete", n)
}

// StateList returns the keys with a prefix, sorted.
func (t *Turn) StateList(prefix string) ([]string, error) {
	n := t.host.StateList(prefix, nil)
	if n <= 0 {
		return nil, t.check("state_list", n)
	}
	list := string(t.result(n))
	return strings.Split(strings.TrimSuffix(list, "\x00"), "\x00"), nil
}

// StateWhole returns a whole number that [Turn.SetStateWhole] wrote, and 0 if there is
// none.
func (t *Turn) StateWhole(key string) (int64, error) {
	value, err := t.StateGet(key)
	if errors.Is(err, NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0, invalid("state " + key + ": it is not a whole number")
	}
	return n, nil
}

// SetStateWhole writes a whole number to the state, in decimal digits.
func (t *Turn) SetStateWhole(key string, n int64) error {
	return t.StateSet(key, strconv.AppendInt(nil, n, 10))
}
