package journal

import (
	"errors"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// UnreadableID is the key in the IDs of a problem (an [abi.Error]) that names the session of
// a live store that cannot be read.
const UnreadableID = "unreadable_session"

// CutShortID is the key in the IDs of a problem (an [abi.Error]) that names the session of a
// live store that lacks acknowledged events at the end of its log, although no power failure
// explains the loss.
const CutShortID = "cut_short_session"

// LeftOutID is the key in the IDs of a problem (an [abi.Error]) that names a file that
// belongs to no session and may be a store that was in use.
const LeftOutID = "left_out_file"

// Damaged returns the problems that mean lost data: live stores that cannot be read or
// lack the end of their logs, and files that may be stores but belong to no session. The
// engine continues without the lost data: a recipe creates its creatures again, and these
// handle their input a second time. A program that must not do that without confirmation
// checks the problems of the engine or of a plan before it applies anything. Every start
// reports the problems again until a store is opened, because a recipe is applied or the
// session is restored.
func Damaged(problems []error) []error {
	var out []error
	for _, p := range problems {
		var typed *abi.Error
		if errors.As(p, &typed) && (typed.IDs[UnreadableID] != "" || typed.IDs[CutShortID] != "" || typed.IDs[LeftOutID] != "") {
			out = append(out, p)
		}
	}
	return out
}

// IsCutShort reports whether one of the problems is that a session lacks the end of its log.
func IsCutShort(problems []error, session SessionID) bool {
	return slices.ContainsFunc(problems, func(p error) bool {
		var typed *abi.Error
		return errors.As(p, &typed) && typed.IDs[CutShortID] == string(session)
	})
}
