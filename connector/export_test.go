package connector

// NewWindowOf is [NewWindow] with another number of slots.
var NewWindowOf = newWindow
