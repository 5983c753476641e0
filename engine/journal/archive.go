package journal

import "context"

// Archive reads the messages and dead letters of saved sessions, which are not in a
// [SavedGraph]. A [Storage] may implement it.
type Archive interface {
	// Messages reads a channel of a session; see [Store].
	Messages(ctx context.Context, session SessionID, channel ChannelID, after, until uint64, limit int, bytes int64) ([]Event, error)
	// History reads the log of a session; see [Store].
	History(ctx context.Context, session SessionID, q HistoryQuery) ([]Event, error)
	// DeadLetters reads the dead letters of a session; see [Store].
	DeadLetters(ctx context.Context, session SessionID, creature CreatureID, after EventID, limit int) ([]DeadLetterRow, error)
}
