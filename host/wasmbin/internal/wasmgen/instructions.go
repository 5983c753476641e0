package wasmgen

// valueType is a value type by its byte in the binary format.
type valueType byte

const (
	i32       valueType = 0x7f
	i64       valueType = 0x7e
	f32       valueType = 0x7d
	f64       valueType = 0x7c
	v128      valueType = 0x7b
	funcref   valueType = 0x70
	externref valueType = 0x6f
)

var (
	numbers  = []valueType{i32, i64, f32, f64}
	allTypes = []valueType{i32, i64, f32, f64, v128, funcref, externref}
)

// letters maps the letters used in signatures to value types.
var letters = map[byte]valueType{
	'i': i32, 'l': i64, 'f': f32, 'd': f64, 'v': v128, 'r': funcref, 'x': externref,
}

// open says which lanes of a result may hold a NaN with unspecified bits.
type open byte

const (
	closed open = iota
	openF32
	openF64
	openF32x4
	openF64x2
)

// danger says how an instruction traps, and so how to restrict its operands to
// make traps rare.
type danger byte

const (
	harmless danger = iota
	divides
	truncates
)

// immediate is the kind of the immediates of an opcode.
type immediate byte

const (
	bare immediate = iota
	memArg
	lane
	memArgLane
	shuffle
)

// instruction is an instruction whose type does not depend on the context.
type instruction struct {
	prefix    byte // 0, 0xfc or 0xfd
	code      uint32
	in, out   []valueType
	nan       open
	danger    danger
	immediate immediate
	align     int // log2 of the natural alignment
	lanes     int
}

// span is a run of opcodes of one signature, such as "ii>i".
type span struct {
	first, last uint32
	signature   string
	nan         open
	danger      danger
}

func signature(s string) (in, out []valueType) {
	side := &in
	for i := range len(s) {
		if s[i] == '>' {
			side = &out
			continue
		}
		*side = append(*side, letters[s[i]])
	}
	return in, out
}

func spread(prefix byte, spans []span) []instruction {
	var out []instruction
	for _, s := range spans {
		for code := s.first; code <= s.last; code++ {
			ins := instruction{prefix: prefix, code: code, nan: s.nan, danger: s.danger}
			ins.in, ins.out = signature(s.signature)
			out = append(out, ins)
		}
	}
	return out
}

// scalars are the numeric instructions on single numbers.
var scalars = append(spread(0, []span{
	{0x45, 0x45, "i>i", closed, harmless},
	{0x46, 0x4f, "ii>i", closed, harmless},
	{0x50, 0x50, "l>i", closed, harmless},
	{0x51, 0x5a, "ll>i", closed, harmless},
	{0x5b, 0x60, "ff>i", closed, harmless},
	{0x61, 0x66, "dd>i", closed, harmless},
	{0x67, 0x69, "i>i", closed, harmless},
	{0x6a, 0x6c, "ii>i", closed, harmless},
	{0x6d, 0x70, "ii>i", closed, divides},
	{0x71, 0x78, "ii>i", closed, harmless},
	{0x79, 0x7b, "l>l", closed, harmless},
	{0x7c, 0x7e, "ll>l", closed, harmless},
	{0x7f, 0x82, "ll>l", closed, divides},
	{0x83, 0x8a, "ll>l", closed, harmless},
	{0x8b, 0x8c, "f>f", closed, harmless}, // abs and neg keep the other bits
	{0x8d, 0x91, "f>f", openF32, harmless},
	{0x92, 0x97, "ff>f", openF32, harmless},
	{0x98, 0x98, "ff>f", closed, harmless}, // copysign keeps them too
	{0x99, 0x9a, "d>d", closed, harmless},
	{0x9b, 0x9f, "d>d", openF64, harmless},
	{0xa0, 0xa5, "dd>d", openF64, harmless},
	{0xa6, 0xa6, "dd>d", closed, harmless},
	{0xa7, 0xa7, "l>i", closed, harmless},
	{0xa8, 0xa9, "f>i", closed, truncates},
	{0xaa, 0xab, "d>i", closed, truncates},
	{0xac, 0xad, "i>l", closed, harmless},
	{0xae, 0xaf, "f>l", closed, truncates},
	{0xb0, 0xb1, "d>l", closed, truncates},
	{0xb2, 0xb3, "i>f", closed, harmless},
	{0xb4, 0xb5, "l>f", closed, harmless},
	{0xb6, 0xb6, "d>f", openF32, harmless},
	{0xb7, 0xb8, "i>d", closed, harmless},
	{0xb9, 0xba, "l>d", closed, harmless},
	{0xbb, 0xbb, "f>d", openF64, harmless},
	{0xbc, 0xbc, "f>i", closed, harmless},
	{0xbd, 0xbd, "d>l", closed, harmless},
	{0xbe, 0xbe, "i>f", closed, harmless},
	{0xbf, 0xbf, "l>d", closed, harmless},
	{0xc0, 0xc1, "i>i", closed, harmless},
	{0xc2, 0xc4, "l>l", closed, harmless},
}), spread(0xfc, []span{
	{0, 1, "f>i", closed, harmless},
	{2, 3, "d>i", closed, harmless},
	{4, 5, "f>l", closed, harmless},
	{6, 7, "d>l", closed, harmless},
})...)

// producers are the numeric instructions by the type of their result.
var producers = func() map[valueType][]instruction {
	out := map[valueType][]instruction{}
	for _, ins := range append(append([]instruction{}, scalars...), vectors...) {
		out[ins.out[0]] = append(out[ins.out[0]], ins)
	}
	return out
}()

// accesses are loads and stores of single numbers.
var accesses = spreadAccesses(0, memArg, []accessSpan{
	{0x28, 0x28, "i>i", 2},
	{0x29, 0x29, "i>l", 3},
	{0x2a, 0x2a, "i>f", 2},
	{0x2b, 0x2b, "i>d", 3},
	{0x2c, 0x2d, "i>i", 0},
	{0x2e, 0x2f, "i>i", 1},
	{0x30, 0x31, "i>l", 0},
	{0x32, 0x33, "i>l", 1},
	{0x34, 0x35, "i>l", 2},
	{0x36, 0x36, "ii>", 2},
	{0x37, 0x37, "il>", 3},
	{0x38, 0x38, "if>", 2},
	{0x39, 0x39, "id>", 3},
	{0x3a, 0x3a, "ii>", 0},
	{0x3b, 0x3b, "ii>", 1},
	{0x3c, 0x3c, "il>", 0},
	{0x3d, 0x3d, "il>", 1},
	{0x3e, 0x3e, "il>", 2},
})

// accessSpan is a run of loads or stores of one signature and width.
type accessSpan struct {
	first, last uint32
	signature   string
	align       int
}

func spreadAccesses(prefix byte, imm immediate, spans []accessSpan) []instruction {
	var out []instruction
	for _, s := range spans {
		for _, ins := range spread(prefix, []span{{s.first, s.last, s.signature, closed, harmless}}) {
			ins.immediate, ins.align = imm, s.align
			out = append(out, ins)
		}
	}
	return out
}
