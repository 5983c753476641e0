package letterbox

import (
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Find finds a dead letter by its own id, or by the id of its message if only one dead
// letter is of that message. page returns the letters after one of them, the first ones
// after the zero id, and none after the last.
func Find(id journal.EventID, page func(after journal.EventID) ([]journal.DeadLetterRow, error)) (journal.DeadLetterRow, error) {
	var found []journal.DeadLetterRow
	for after := (journal.EventID{}); ; {
		letters, err := page(after)
		if err != nil {
			return journal.DeadLetterRow{}, err
		}
		if len(letters) == 0 {
			break
		}
		for _, l := range letters {
			if l.ID == id {
				return l, nil
			}
			if l.Message == id {
				found = append(found, l)
			}
		}
		after = letters[len(letters)-1].ID
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		err := errtext.Gone("dead letter", id.String())
		err.Remedy = "dead_letters lists them"
		return journal.DeadLetterRow{}, err
	}
	return journal.DeadLetterRow{}, &abi.Error{
		Code: abi.Ambiguous, Op: "redeliver", Message: "several creatures have a dead letter of message " + id.String(),
		Remedy: "name the dead letter by its own id", IDs: map[string]string{"message": id.String()},
	}
}
