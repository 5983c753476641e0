package journal

// DirectPrefix begins the address of a direct channel. What follows is the id of the
// creature that it leads to and, if it was made for a parent, a point and its id.
const DirectPrefix = "direct."
