package engine

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/tidwall/btree"
)

// creatureState is what a creature has written, by key. It is ordered, so that
// listing costs as much as what is listed.
type creatureState = btree.Map[string, []byte]

// keyCost is what a key counts against the limit state besides its bytes, for that
// is about what it costs to keep it.
const keyCost = 32

// stateCost is what a key and its value count against the limit state.
func stateCost(key, value int) int64 { return int64(key + value + keyCost) }

// stateWrite is what the turn leaves of a key.
type stateWrite struct {
	key     string
	value   []byte
	deleted bool
}

// saved is the state before the turn: nothing while a creature that has never
// run is being made.
func (t *turn) saved() *creatureState {
	if t.c.state == nil {
		return &noState
	}
	return t.c.state
}

var noState creatureState

// written finds the write of a key, or the place where it belongs.
func (t *turn) written(key []byte) (at int, ok bool) {
	return slices.BinarySearchFunc(t.writes, key, func(w stateWrite, key []byte) int { return compareKey(w.key, key) })
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
func (t *turn) StateGet(key []byte) ([]byte, abi.Code) {
	if int64(len(key)) <= t.c.limits.StateKey {
		if code := t.checkKey(key); code != abi.OK {
			return nil, code
		}
		if v, ok := t.lookup(key); ok {
			return v, abi.OK
		}
	}
	return nil, t.fail(abi.NotFound, "", "the state has no key %s", errtext.Quoted(key))
}

// StateSet implements [abi.Turn].
func (t *turn) StateSet(key, value []byte) abi.Code {
	if code := t.mayWrite(key); code != abi.OK {
		return code
	}
	limits := &t.c.limits
	if int64(len(value)) > limits.StateValue {
		return t.fail(abi.TooLarge, "split the value, or raise the limit", "the value of %s has %d bytes; the limit state_value is %d", errtext.Quoted(key), len(value), limits.StateValue)
	}
	size := t.stateSize + stateCost(len(key), len(value))
	if old, ok := t.lookup(key); ok {
		size -= stateCost(len(key), len(old))
	}
	if size > limits.State {
		return t.overLimit("state", limits.State)
	}
	return t.write(key, slices.Clone(value), false, size)
}

// StateDelete implements [abi.Turn].
func (t *turn) StateDelete(key []byte) (existed bool, code abi.Code) {
	if code := t.mayWrite(key); code != abi.OK {
		return false, code
	}
	old, ok := t.lookup(key)
	if !ok {
		return false, abi.OK
	}
	code = t.write(key, nil, true, t.stateSize-stateCost(len(key), len(old)))
	return code == abi.OK, code
}

// write replaces what the turn has written to a key before: only the last value
// counts, and a turn that writes a key again and again holds one.
func (t *turn) write(key, value []byte, deleted bool, size int64) abi.Code {
	at, ok := t.written(key)
	switch {
	case ok:
		t.writes[at].value, t.writes[at].deleted = value, deleted
	case len(t.writes) >= t.c.limits.StateWrites:
		return t.overLimit("state_writes", int64(t.c.limits.StateWrites))
	default:
		t.writes = slices.Insert(t.writes, at, stateWrite{string(key), value, deleted})
	}
	t.stateSize = size
	return abi.OK
}

// lookup returns a value as the turn sees it.
func (t *turn) lookup(key []byte) ([]byte, bool) {
	if at, ok := t.written(key); ok {
		return t.writes[at].value, !t.writes[at].deleted
	}
	return t.saved().Get(string(key))
}

func (t *turn) mayWrite(key []byte) abi.Code {
	if code := t.effect(); code != abi.OK {
		return code
	}
	if int64(len(key)) > t.c.limits.StateKey {
		return t.fail(abi.TooLarge, "use a shorter key", "the key has %d bytes; the limit state_key is %d", len(key), t.c.limits.StateKey)
	}
	return t.checkKey(key)
}

// checkKey refuses what can be no key.
func (t *turn) checkKey(key []byte) abi.Code {
	if len(key) == 0 || !utf8.Valid(key) || bytes.IndexByte(key, 0) >= 0 {
		return t.fail(abi.InvalidArgument, "use another key", "a key is UTF-8 without NUL and not empty")
	}
	return abi.OK
}

// listPage is how many bytes of keys StateList hands over at a time, or a key more.
const listPage = 8 << 10

// StateList implements [abi.Turn]: the keys as the creature has them, with those
// that the turn has written between them.
func (t *turn) StateList(prefix []byte, page func(keys []byte)) abi.Code {
	if int64(len(prefix)) > t.c.limits.StateKey {
		return abi.OK // no key is as long
	}
	p := string(prefix)
	out := t.scratch[:0]
	list := func(key string) {
		if out = append(append(out, key...), 0); len(out) >= listPage {
			page(out)
			out = out[:0]
		}
	}
	at, _ := t.written(prefix)
	writes := t.writes[at:]
	// upTo lists the written keys before next; all of them if there is none.
	upTo := func(next string, more bool) (replaced bool) {
		for ; len(writes) > 0 && strings.HasPrefix(writes[0].key, p); writes = writes[1:] {
			w := &writes[0]
			if more && w.key > next {
				break
			}
			if !w.deleted {
				list(w.key)
			}
			replaced = replaced || more && w.key == next
		}
		return replaced
	}
	t.saved().Ascend(p, func(key string, _ []byte) bool {
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
	t.scratch = out
	return abi.OK
}
