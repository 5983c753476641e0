package abi

// ReachPrefix begins the name that a creature passes to the function request to reach a
// capability.
const ReachPrefix = "capability:"
