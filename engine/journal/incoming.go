package journal

// Incoming is a message that a reader outside of the graph reads.
type Incoming struct {
	ID      EventID
	Seq     uint64 // in its channel
	Time    int64  // nanoseconds since 1970
	Sender  string // name of the sender; empty when it came from outside
	Payload []byte
	Headers map[string]string
}

// ReaderOptions configure such a reader.
type ReaderOptions struct {
	// FromStart makes a reader that has no cursor yet begin at the channel's first
	// message rather than at the next one.
	FromStart bool
	// Buffer is how many messages are held in memory; zero means 1,024.
	Buffer int
}
