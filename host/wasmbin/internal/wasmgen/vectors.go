package wasmgen

// vectors are the instructions on v128 without access to memory. Constants,
// which carry sixteen bytes, are made where values are.
var vectors = append(append(spread(0xfd, []span{
	{0x0e, 0x0e, "vv>v", closed, harmless}, // swizzle
	{0x0f, 0x11, "i>v", closed, harmless},  // splats
	{0x12, 0x12, "l>v", closed, harmless},
	{0x13, 0x13, "f>v", closed, harmless},
	{0x14, 0x14, "d>v", closed, harmless},
	{0x23, 0x4c, "vv>v", closed, harmless}, // comparisons
	{0x4d, 0x4d, "v>v", closed, harmless},  // bits
	{0x4e, 0x51, "vv>v", closed, harmless},
	{0x52, 0x52, "vvv>v", closed, harmless},
	{0x53, 0x53, "v>i", closed, harmless},
	{0x5e, 0x5e, "v>v", openF32x4, harmless}, // demote
	{0x5f, 0x5f, "v>v", openF64x2, harmless}, // promote
	{0x60, 0x62, "v>v", closed, harmless},    // i8x16
	{0x63, 0x64, "v>i", closed, harmless},
	{0x65, 0x66, "vv>v", closed, harmless},
	{0x67, 0x6a, "v>v", openF32x4, harmless}, // f32x4 rounding
	{0x6b, 0x6d, "vi>v", closed, harmless},
	{0x6e, 0x73, "vv>v", closed, harmless},
	{0x74, 0x75, "v>v", openF64x2, harmless}, // f64x2 rounding
	{0x76, 0x79, "vv>v", closed, harmless},
	{0x7a, 0x7a, "v>v", openF64x2, harmless}, // f64x2 rounding
	{0x7b, 0x7b, "vv>v", closed, harmless},
	{0x7c, 0x7f, "v>v", closed, harmless}, // pairwise additions
	{0x80, 0x81, "v>v", closed, harmless}, // i16x8
	{0x82, 0x82, "vv>v", closed, harmless},
	{0x83, 0x84, "v>i", closed, harmless},
	{0x85, 0x86, "vv>v", closed, harmless},
	{0x87, 0x8a, "v>v", closed, harmless},
	{0x8b, 0x8d, "vi>v", closed, harmless},
	{0x8e, 0x93, "vv>v", closed, harmless},
	{0x94, 0x94, "v>v", openF64x2, harmless}, // f64x2 rounding
	{0x95, 0x99, "vv>v", closed, harmless},
	{0x9b, 0x9f, "vv>v", closed, harmless},
	{0xa0, 0xa1, "v>v", closed, harmless}, // i32x4
	{0xa3, 0xa4, "v>i", closed, harmless},
	{0xa7, 0xaa, "v>v", closed, harmless},
	{0xab, 0xad, "vi>v", closed, harmless},
	{0xae, 0xae, "vv>v", closed, harmless},
	{0xb1, 0xb1, "vv>v", closed, harmless},
	{0xb5, 0xba, "vv>v", closed, harmless},
	{0xbc, 0xbf, "vv>v", closed, harmless},
	{0xc0, 0xc1, "v>v", closed, harmless}, // i64x2
	{0xc3, 0xc4, "v>i", closed, harmless},
	{0xc7, 0xca, "v>v", closed, harmless},
	{0xcb, 0xcd, "vi>v", closed, harmless},
	{0xce, 0xce, "vv>v", closed, harmless},
	{0xd1, 0xd1, "vv>v", closed, harmless},
	{0xd5, 0xdf, "vv>v", closed, harmless},
	{0xe0, 0xe1, "v>v", closed, harmless}, // f32x4
	{0xe3, 0xe3, "v>v", openF32x4, harmless},
	{0xe4, 0xe9, "vv>v", openF32x4, harmless},
	{0xea, 0xeb, "vv>v", closed, harmless}, // pmin and pmax return an operand
	{0xec, 0xed, "v>v", closed, harmless},  // f64x2
	{0xef, 0xef, "v>v", openF64x2, harmless},
	{0xf0, 0xf5, "vv>v", openF64x2, harmless},
	{0xf6, 0xf7, "vv>v", closed, harmless},
	{0xf8, 0xff, "v>v", closed, harmless}, // conversions
}), spreadLanes(0xfd, lane, []laneSpan{
	{0x15, 0x16, "v>i", 16, 0}, // extract and replace
	{0x17, 0x17, "vi>v", 16, 0},
	{0x18, 0x19, "v>i", 8, 0},
	{0x1a, 0x1a, "vi>v", 8, 0},
	{0x1b, 0x1b, "v>i", 4, 0},
	{0x1c, 0x1c, "vi>v", 4, 0},
	{0x1d, 0x1d, "v>l", 2, 0},
	{0x1e, 0x1e, "vl>v", 2, 0},
	{0x1f, 0x1f, "v>f", 4, 0},
	{0x20, 0x20, "vf>v", 4, 0},
	{0x21, 0x21, "v>d", 2, 0},
	{0x22, 0x22, "vd>v", 2, 0},
})...), spreadLanes(0xfd, shuffle, []laneSpan{{0x0d, 0x0d, "vv>v", 32, 0}})...)

// vectorAccesses are the loads and stores of v128.
var vectorAccesses = append(spreadAccesses(0xfd, memArg, []accessSpan{
	{0x00, 0x00, "i>v", 4},
	{0x01, 0x06, "i>v", 3}, // widening
	{0x07, 0x07, "i>v", 0}, // splats
	{0x08, 0x08, "i>v", 1},
	{0x09, 0x09, "i>v", 2},
	{0x0a, 0x0a, "i>v", 3},
	{0x0b, 0x0b, "iv>", 4},
	{0x5c, 0x5c, "i>v", 2}, // the rest zero
	{0x5d, 0x5d, "i>v", 3},
}), spreadLanes(0xfd, memArgLane, []laneSpan{
	{0x54, 0x54, "iv>v", 16, 0},
	{0x55, 0x55, "iv>v", 8, 1},
	{0x56, 0x56, "iv>v", 4, 2},
	{0x57, 0x57, "iv>v", 2, 3},
	{0x58, 0x58, "iv>", 16, 0},
	{0x59, 0x59, "iv>", 8, 1},
	{0x5a, 0x5a, "iv>", 4, 2},
	{0x5b, 0x5b, "iv>", 2, 3},
})...)

// laneSpan is a run of instructions with a lane index.
type laneSpan struct {
	first, last uint32
	signature   string
	lanes       int
	align       int
}

func spreadLanes(prefix byte, imm immediate, spans []laneSpan) []instruction {
	var out []instruction
	for _, s := range spans {
		for _, ins := range spread(prefix, []span{{s.first, s.last, s.signature, closed, harmless}}) {
			ins.immediate, ins.lanes, ins.align = imm, s.lanes, s.align
			out = append(out, ins)
		}
	}
	return out
}
