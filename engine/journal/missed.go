package journal

import "fmt"

// Missed is the cause of the error that a reader returns for messages that no longer exist:
// they were sent in a graph without a store before the reader existed, or were pruned from
// the history. To continue after them, a caller acknowledges To. Otherwise a later reader of
// that name gets the same error.
type Missed struct {
	Channel  ChannelID
	From, To uint64 // in the channel, both included
}

// Error names the missed messages.
func (m *Missed) Error() string {
	if m.From == m.To {
		return fmt.Sprintf("message %d is no longer kept", m.From)
	}
	return fmt.Sprintf("messages %d to %d are no longer kept", m.From, m.To)
}
