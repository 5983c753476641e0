package journal

import "context"

// Archive reads what saved sessions hold besides the rows of a [SavedGraph]. A
// [Storage] may be one.
type Archive interface {
	// Messages reads a channel of a session; see [Store].
	Messages(ctx context.Context, session SessionID, channel ChannelID, after, until uint64, limit int, bytes int64) ([]Event, error)
	// DeadLetters reads the dead letters of a session; see [Store].
	DeadLetters(ctx context.Context, session SessionID, creature CreatureID, after EventID, limit int) ([]DeadLetterRow, error)
}
