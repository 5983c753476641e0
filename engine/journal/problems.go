package journal

import (
	"errors"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// UnreadableID is the id of a problem, an [abi.Error], that names the session of a live
// store which cannot be read.
const UnreadableID = "unreadable_session"

// CutShortID is the id of a problem, an [abi.Error], that names the session of a live
// store which has lost the end of its log, although that had been acknowledged and no
// power failure explains it.
const CutShortID = "cut_short_session"

// LeftOutID is the id of a problem, an [abi.Error], that names a file which may be a
// store that was in use, and which no session has.
const LeftOutID = "left_out_file"

// Damaged are those of the problems that are live stores which cannot be read, or lack
// the end of their logs, and files that may be stores and are no session's. What is lost is not there: a recipe makes anew what it made,
// and takes input again that it has handled before. A program that must not do that
// without being told to looks here, at [Engine.Problems] or those of a plan, before it
// applies anything: until a store is opened by [Engine.Apply] or [Engine.Restore], every
// start tells of it again.
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

// IsCutShort reports whether the problems tell of a session that it lacks its end.
func IsCutShort(problems []error, session SessionID) bool {
	return slices.ContainsFunc(problems, func(p error) bool {
		var typed *abi.Error
		return errors.As(p, &typed) && typed.IDs[CutShortID] == string(session)
	})
}
