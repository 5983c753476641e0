package wasmbin

// Features of versions after 2.0. Modules that use them are refused with these
// names.
const (
	featureThreads     = "threads"
	featureTailCalls   = "tail calls"
	featureExceptions  = "exception handling"
	featureGC          = "garbage collection (or typed function references)"
	feature64          = "64-bit memories or tables"
	featureMultiMemory = "multiple memories"
	featureExtended    = "extended constant expressions"
	featureRelaxed     = "relaxed vector instructions"
	featureStrings     = "string references"
	featureSwitching   = "stack switching"
	featureWide        = "wide arithmetic"
	featureDiscard     = "memory control"
	featurePageSizes   = "custom page sizes"
	featureHalf        = "half precision"
)

// featureOf names the feature of an instruction that Wasm 2.0 does not have,
// or "" if it is unknown. number matters only after a prefix.
func featureOf(op byte, number uint32) string {
	switch {
	case op >= 0x06 && op <= 0x0a, op == 0x18, op == 0x19, op == 0x1f:
		return featureExceptions
	case op == 0x12 || op == 0x13:
		return featureTailCalls
	case op == 0x14 || op == 0x15, op >= 0xd3 && op <= 0xd6:
		return featureGC
	case op >= 0xe0 && op <= 0xe6:
		return featureSwitching
	case op == 0xfb && number >= 0x80:
		return featureStrings
	case op == 0xfb:
		return featureGC
	case op == prefixMisc && number == 18:
		return featureDiscard
	case op == prefixMisc && number >= 19 && number <= 22:
		return featureWide
	case op == prefixMisc && number >= 48 && number <= 49:
		return featureHalf
	case op == prefixVector && number >= 0x100 && number <= 0x12f:
		return featureRelaxed
	case op == prefixVector && number >= 0x130:
		return featureHalf
	case op == 0xfe:
		return featureThreads
	}
	return ""
}

// featureOfType names the feature of a value type that Wasm 2.0 does not have,
// or "" if it is unknown.
func featureOfType(b byte) string {
	switch b {
	case 0x69, 0x74:
		return featureExceptions
	case 0x68, 0x75:
		return featureSwitching
	case 0x67, 0x66, 0x65, 0x62:
		return featureStrings
	case 0x63, 0x64, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x71, 0x72, 0x73, 0x77, 0x78:
		return featureGC
	}
	return ""
}
