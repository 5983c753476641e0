package effects

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/tidwall/btree"
)

// State is what a creature has written, by key. It is ordered, so that
// listing costs as much as what is listed.
type State = btree.Map[string, []byte]

// StateOf is the state that a store has of a creature, and what it counts against the
// limit.
func StateOf(saved map[string][]byte) (state *State, size int64) {
	state = &State{}
	for k, v := range saved {
		state.Set(k, v)
		size += Cost(len(k), len(v))
	}
	return state, size
}

// Entries lists the keys of a state with a prefix; a nil state has none.
func Entries(state *State, prefix string) []inspect.StateEntry {
	out := []inspect.StateEntry{}
	if state != nil {
		state.Ascend(prefix, func(key string, value []byte) bool {
			if !strings.HasPrefix(key, prefix) {
				return false
			}
			out = append(out, inspect.StateEntry{Key: key, Value: slices.Clone(value)})
			return true
		})
	}
	return out
}

// keyCost is what a key counts against the limit state besides its bytes: about as much
// as it costs to keep the key.
const keyCost = 32

// Cost is what a key and its value count against the limit state.
func Cost(key, value int) int64 { return int64(key + value + keyCost) }

// ChangeState changes or deletes a key, and returns by how much more counts against the limit.
func ChangeState(state *State, key string, value []byte, deleted bool) (more int64) {
	if old, ok := state.Get(key); ok {
		more -= Cost(len(key), len(old))
	}
	if deleted {
		state.Delete(key)
		return more
	}
	state.Set(key, value)
	return more + Cost(len(key), len(value))
}

// Write is the last change of a key by the turn.
type Write struct {
	Key     string
	Value   []byte
	Deleted bool
}

// Encode writes the payload of a state event: the key, NUL, then
// "=" and the value, or "-" for a deletion.
func (w *Write) Encode() []byte {
	b := make([]byte, 0, len(w.Key)+2+len(w.Value))
	b = append(append(b, w.Key...), 0)
	if w.Deleted {
		return append(b, '-')
	}
	return append(append(b, '='), w.Value...)
}

// written finds the write of a key, or the place where it belongs.
func (t *Own) written(key []byte) (at int, ok bool) {
	return slices.BinarySearchFunc(t.Writes, key, func(w Write, key []byte) int { return compareKey(w.Key, key) })
}

// compareKey compares as cmp.Compare does, and copies nothing.
func compareKey(a string, b []byte) int {
	switch {
	case a < string(b):
		return -1
	case a == string(b):
		return 0
	}
	return 1
}

// StateGet implements [abi.Turn].
func (t *Own) StateGet(key []byte) ([]byte, abi.Code) {
	if int64(len(key)) <= t.Limits.StateKey {
		if code := t.checkKey(key); code != abi.OK {
			return nil, code
		}
		if v, ok := t.lookup(key); ok {
			return v, abi.OK
		}
	}
	return nil, t.Fail(abi.NotFound, "", "the state has no key %s", errtext.Quoted(key))
}

// StateSet implements [abi.Turn].
func (t *Own) StateSet(key, value []byte) abi.Code {
	if code := t.mayWrite(key); code != abi.OK {
		return code
	}
	limits := t.Limits
	if int64(len(value)) > limits.StateValue {
		return t.Fail(abi.TooLarge, "split the value, or raise the limit", "the value of %s has %d bytes; the limit state_value is %d", errtext.Quoted(key), len(value), limits.StateValue)
	}
	size := t.StateSize + Cost(len(key), len(value))
	if old, ok := t.lookup(key); ok {
		size -= Cost(len(key), len(old))
	}
	if size > limits.State {
		return t.OverLimit("state", limits.State)
	}
	return t.write(key, slices.Clone(value), false, size)
}

// StateDelete implements [abi.Turn].
func (t *Own) StateDelete(key []byte) (existed bool, code abi.Code) {
	if code := t.mayWrite(key); code != abi.OK {
		return false, code
	}
	old, ok := t.lookup(key)
	if !ok {
		return false, abi.OK
	}
	code = t.write(key, nil, true, t.StateSize-Cost(len(key), len(old)))
	return code == abi.OK, code
}

// write replaces what the turn has written to a key before: only the last value
// counts, and a turn that writes a key again and again holds one.
func (t *Own) write(key, value []byte, deleted bool, size int64) abi.Code {
	at, ok := t.written(key)
	switch {
	case ok:
		t.Writes[at].Value, t.Writes[at].Deleted = value, deleted
	case len(t.Writes) >= t.Limits.StateWrites:
		return t.OverLimit("state_writes", int64(t.Limits.StateWrites))
	default:
		t.Writes = slices.Insert(t.Writes, at, Write{string(key), value, deleted})
	}
	t.StateSize = size
	return abi.OK
}

// lookup returns a value as the turn sees it.
func (t *Own) lookup(key []byte) ([]byte, bool) {
	if at, ok := t.written(key); ok {
		return t.Writes[at].Value, !t.Writes[at].Deleted
	}
	return t.saved.Get(string(key))
}

func (t *Own) mayWrite(key []byte) abi.Code {
	if code := t.Effect(); code != abi.OK {
		return code
	}
	if int64(len(key)) > t.Limits.StateKey {
		return t.Fail(abi.TooLarge, "use a shorter key", "the key has %d bytes; the limit state_key is %d", len(key), t.Limits.StateKey)
	}
	return t.checkKey(key)
}

// checkKey refuses a text that cannot be a key.
func (t *Own) checkKey(key []byte) abi.Code {
	if len(key) == 0 || !utf8.Valid(key) || bytes.IndexByte(key, 0) >= 0 {
		return t.Fail(abi.InvalidArgument, "use another key", "a key is UTF-8 without NUL and not empty")
	}
	return abi.OK
}

// ListPage is how many bytes of keys StateList passes on at a time; the last key of a
// page may exceed it.
const ListPage = 8 << 10

// StateList implements [abi.Turn]: the keys as the creature has them, with those
// that the turn has written between them.
func (t *Own) StateList(prefix []byte, page func(keys []byte)) abi.Code {
	if int64(len(prefix)) > t.Limits.StateKey {
		return abi.OK // no key is as long
	}
	p := string(prefix)
	out := t.Scratch[:0]
	list := func(key string) {
		if out = append(append(out, key...), 0); len(out) >= ListPage {
			page(out)
			out = out[:0]
		}
	}
	at, _ := t.written(prefix)
	writes := t.Writes[at:]
	// upTo lists the written keys before next; all of them if there is none.
	upTo := func(next string, more bool) (replaced bool) {
		for ; len(writes) > 0 && strings.HasPrefix(writes[0].Key, p); writes = writes[1:] {
			w := &writes[0]
			if more && w.Key > next {
				break
			}
			if !w.Deleted {
				list(w.Key)
			}
			replaced = replaced || more && w.Key == next
		}
		return replaced
	}
	t.saved.Ascend(p, func(key string, _ []byte) bool {
		if !strings.HasPrefix(key, p) {
			return false
		}
		if !upTo(key, true) {
			list(key)
		}
		return true
	})
	upTo("", false)
	if len(out) > 0 {
		page(out)
	}
	t.Scratch = out
	return abi.OK
}
