package catalog

import "github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"

// step is a transaction of the catalogue: the points right before and right after
// its commit.
type step struct {
	before, after failpoint.Point
	loose         bool // it need not be durable: a power loss may undo it
}

var (
	stepCreate   = step{failpoint.Creating, failpoint.Created, false}
	stepCut      = step{failpoint.Cutting, failpoint.Cut, true}
	stepFirm     = step{failpoint.Firming, failpoint.Firm, true}
	stepTakeBack = step{failpoint.TakingBack, failpoint.TakenBack, false}
	stepRetire   = step{failpoint.Retiring, failpoint.Retired, false}
	stepNote     = step{failpoint.Noting, failpoint.Noted, false}
	stepComplete = step{failpoint.Completing, failpoint.Completed, false}
	stepRelease  = step{failpoint.Releasing, failpoint.Released, false}
	stepSweep    = step{failpoint.Sweeping, failpoint.Swept, false}
)
