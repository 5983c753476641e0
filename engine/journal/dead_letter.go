package journal

// WasSent reports whether a dead letter reached a channel or an inbox. If not, it is a send
// for which there was no edge.
func (l *DeadLetterRow) WasSent() bool { return l.Seq > 0 }

// Size returns the number of bytes of payload, headers and texts.
func (l *DeadLetterRow) Size() int64 {
	return int64(len(l.Payload) + len(l.Headers) + len(l.Error) + len(l.LastWords))
}
