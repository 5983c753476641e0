package sqlitestore

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// turns reports deliveries that a creature has handled twice.
func (v *verification) turns() error {
	seen := map[string]bool{} // by message text: several files may have it
	for _, s := range v.snapshot.files {
		var twice [][2]int64
		err := sqlite.Each(v.ctx, s.tx, func(scan func(...any) error) error {
			var first, last int64
			err := scan(&first, &last)
			twice = append(twice, [2]int64{first, last})
			return err
		}, "SELECT min(id), max(id) FROM event WHERE kind = 2 AND channel IS NOT NULL AND seq IS NOT NULL GROUP BY creature, channel, seq HAVING count(*) > 1")
		if err != nil {
			return err
		}
		for _, pair := range twice {
			text, err := s.turnTwice(v, pair)
			if err != nil {
				return err
			}
			if text != "" && !seen[text] {
				seen[text] = true
				v.report.Duplicate = append(v.report.Duplicate, text)
			}
		}
	}
	return nil
}

// turnTwice describes a turn that has been logged twice; "" if the session is not
// concerned.
func (s *snapshot) turnTwice(v *verification, pair [2]int64) (text string, err error) {
	var ids [2]journal.EventID
	for i := range pair {
		if ids[i], err = s.r.unpack(v.ctx, s.tx, pair[i]); err != nil {
			return "", err
		}
		if _, wanted := v.snapshot.family.only[ids[i].Origin]; !wanted && v.snapshot.family.only != nil {
			return "", nil
		}
	}
	err = sqlite.Each(v.ctx, s.tx, func(scan func(...any) error) error {
		var creature, channel string
		var seq int64
		err := scan(&creature, &channel, &seq)
		text = fmt.Sprintf("the turn of %s on channel %s number %d: %s and %s", creature, channel, seq, ids[0], ids[1])
		return err
	}, "SELECT coalesce(creature, ''), channel, seq FROM event WHERE id = ?", pair[0])
	return text, err
}

// written is the last event of a value of state.
type written struct {
	ts      int64
	id      journal.EventID
	deleted bool
	sum     [sha256.Size]byte
}

// states compares the state of creatures with the events that wrote it. If a part of the
// history is missing, it compares nothing. State that a graph without a store has brought
// along is in no event; and a value from before the time up to which history was pruned may
// have been overwritten by a pruned event.
func (v *verification) states() error {
	if v.snapshot.family.own == nil || v.lossy() {
		return nil
	}
	last := map[stateKey]written{}
	for _, s := range v.snapshot.files {
		if err := s.written(v, last); err != nil {
			return err
		}
	}
	maps.DeleteFunc(last, func(_ stateKey, w written) bool { return w.ts < v.pruned })
	err := sqlite.Each(v.ctx, v.snapshot.files[0].tx, func(scan func(...any) error) error {
		var creature, key string
		var value []byte
		if err := scan(&creature, &key, &value); err != nil {
			return err
		}
		at := stateKey{journal.CreatureID(creature), key}
		w, logged := last[at]
		delete(last, at)
		switch {
		case logged && w.deleted:
			v.damage(fmt.Sprintf("%s holds the state %q, which %s says was deleted", creature, key, w.id))
		case logged && w.sum != sha256.Sum256(value):
			v.damage(fmt.Sprintf("%s holds another value of the state %q than %s says", creature, key, w.id))
		}
		return nil
	}, "SELECT creature, key, value FROM state_value ORDER BY creature, key")
	if err != nil {
		return err
	}
	for _, at := range slices.SortedFunc(maps.Keys(last), func(a, b stateKey) int {
		return strings.Compare(string(a.creature)+"\x00"+a.key, string(b.creature)+"\x00"+b.key)
	}) {
		if w := last[at]; !w.deleted {
			v.damage(fmt.Sprintf("%s does not hold the state %q, which %s says it wrote", at.creature, at.key, w.id))
		}
	}
	return nil
}

// written records the state events of a file for the creatures that the session has.
func (s *snapshot) written(v *verification, last map[stateKey]written) error {
	creatures := map[string]bool{}
	err := sqlite.Each(v.ctx, v.snapshot.files[0].tx, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		creatures[id] = true
		return err
	}, "SELECT id FROM creature")
	if err != nil {
		return err
	}
	packed := map[stateKey]int64{}
	err = sqlite.Each(v.ctx, s.tx, func(scan func(...any) error) error {
		var id, ts int64
		var creature string
		var payload []byte
		if err := scan(&id, &ts, &creature, &payload); err != nil || !creatures[creature] {
			return err
		}
		key, value, deleted := journal.DecodeStateEvent(payload)
		at := stateKey{journal.CreatureID(creature), key}
		if ts >= last[at].ts {
			last[at], packed[at] = written{ts: ts, deleted: deleted, sum: sha256.Sum256(value)}, id
		}
		return nil
	}, "SELECT id, ts, coalesce(creature, ''), payload FROM event WHERE kind = 4 ORDER BY id")
	for at, id := range packed {
		if err == nil {
			w := last[at]
			w.id, err = s.r.unpack(v.ctx, s.tx, id)
			last[at] = w
		}
	}
	return err
}
