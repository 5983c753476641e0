package journal

// DirectPrefix begins the address of a direct channel. It is followed by the id of the
// creature that the channel leads to and, if the channel was made for a parent, by a dot
// and the id of the parent.
const DirectPrefix = "direct."
