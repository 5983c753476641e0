// A small regular expression matcher that runs in linear time: the pattern
// becomes a program for a machine that follows all alternatives at once
// (Thompson's construction), so no input can make it slow.
//
//	x        the character x          .       any byte but newline
//	[a-z]    one of a class           [^a-z]  one that is not in it
//	x* x+ x? repeated                 x|y     one or the other
//	(x)      a group                  ^ $     start and end of the text
//	\d \w \s \D \W \S  classes        \t \n \r \xHH  bytes; \. a literal dot
//
// It works on bytes. A character beyond ASCII stands for its UTF-8 bytes and can
// be repeated, but not be in a class.
#ifndef PATTERN_H
#define PATTERN_H

#include "bare.h"

#define PATTERN_PROGRAM 512 // instructions
#define PATTERN_CLASSES 32
#define PATTERN_DEPTH 24 // groups within groups

enum pattern_op { OP_BYTE, OP_ANY, OP_CLASS, OP_START, OP_END, OP_SPLIT, OP_JUMP, OP_MATCH };

typedef struct {
	uint8_t op, arg; // arg: the byte, or the number of the class
	int16_t jump;    // of SPLIT and JUMP, relative; SPLIT also goes on to the next
} pattern_inst;

typedef struct {
	uint32_t bits[8];
} pattern_set; // of bytes

static pattern_inst pattern_program[PATTERN_PROGRAM];
static pattern_set pattern_classes[PATTERN_CLASSES];
static int32_t pattern_len, pattern_class_count;
static int pattern_fold; // ASCII letters match in either case

// What the scan may skip: with pattern_first_known only texts with a byte of
// pattern_first can match.
static pattern_set pattern_first;
static int pattern_first_known;

static int set_has(const pattern_set *s, uint8_t b) { return s->bits[b >> 5] >> (b & 31) & 1; }
static void set_add(pattern_set *s, uint8_t b) { s->bits[b >> 5] |= 1u << (b & 31); }

static int is_letter(uint8_t b) { return (uint8_t)((b | 0x20) - 'a') < 26; }

// ---------------------------------------------------------------------------
// The compiler. A fragment is a run of instructions with relative jumps, so another
// fragment can be put before it without adjusting it.

typedef struct {
	tr_bytes text;
	int32_t at;
	const char *error; // NULL if there is none
} pattern_parser;

static int fail(pattern_parser *p, const char *error) {
	if (!p->error) p->error = error;
	return 0;
}

static int more(const pattern_parser *p) { return p->at < p->text.len; }
static int next_is(const pattern_parser *p, uint8_t b) { return more(p) && p->text.ptr[p->at] == b; }

static int emit(pattern_parser *p, int32_t at, uint8_t op, uint8_t arg, int32_t jump) {
	if (pattern_len == PATTERN_PROGRAM) return fail(p, "the pattern is too long");
	memmove(pattern_program + at + 1, pattern_program + at, (size_t)(pattern_len - at) * sizeof *pattern_program);
	pattern_program[at] = (pattern_inst){op, arg, (int16_t)jump};
	pattern_len++;
	return 1;
}

static int emit_byte(pattern_parser *p, uint8_t b) {
	if (pattern_fold && is_letter(b)) b |= 0x20;
	return emit(p, pattern_len, OP_BYTE, b, 0);
}

static int emit_class(pattern_parser *p, const pattern_set *s, int negate) {
	if (pattern_class_count == PATTERN_CLASSES) return fail(p, "the pattern has too many classes");
	pattern_set *class = &pattern_classes[pattern_class_count];
	*class = *s;
	for (int b = 'a'; pattern_fold && b <= 'z'; b++) {
		if (set_has(s, (uint8_t)b) || set_has(s, (uint8_t)(b - 32))) {
			set_add(class, (uint8_t)b);
			set_add(class, (uint8_t)(b - 32));
		}
	}
	for (int i = 0; negate && i < 8; i++) class->bits[i] = ~class->bits[i];
	return emit(p, pattern_len, OP_CLASS, (uint8_t)pattern_class_count++, 0);
}

// named_class adds \d, \w or \s, or with a capital letter all other bytes.
static int named_class(uint8_t letter, pattern_set *s) {
	pattern_set named = {0};
	for (int b = 0; b < 128; b++) {
		int digit = b >= '0' && b <= '9';
		int in;
		switch (letter | 0x20) {
		case 'd': in = digit; break;
		case 'w': in = digit || is_letter((uint8_t)b) || b == '_'; break;
		case 's': in = b == ' ' || (b >= '\t' && b <= '\r'); break;
		default: return 0;
		}
		if (in) set_add(&named, (uint8_t)b);
	}
	for (int i = 0; i < 8; i++) s->bits[i] |= letter & 0x20 ? named.bits[i] : ~named.bits[i];
	return 1;
}

static int hex_digit(pattern_parser *p) {
	uint8_t b = more(p) ? p->text.ptr[p->at++] : 0, letter = b | 0x20;
	if (b >= '0' && b <= '9') return b - '0';
	if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
	return -1;
}

// escape reads the part after a backslash: a byte, or a named class into s with *byte
// = -1.
static int escape(pattern_parser *p, int *byte, pattern_set *s) {
	if (!more(p)) return fail(p, "the pattern ends with a backslash");
	uint8_t b = p->text.ptr[p->at++];
	*byte = -1;
	if (named_class(b, s)) return 1;
	switch (b) {
	case 't': *byte = '\t'; return 1;
	case 'n': *byte = '\n'; return 1;
	case 'r': *byte = '\r'; return 1;
	case 'x': {
		int high = hex_digit(p), low = hex_digit(p);
		if (high < 0 || low < 0) return fail(p, "two hexadecimal digits follow \\x");
		*byte = high << 4 | low;
		return 1;
	}
	}
	if (b >= 0x80 || is_letter(b) || (b >= '0' && b <= '9')) return fail(p, "there is no such escape");
	*byte = b;
	return 1;
}

// class_byte reads one byte of a class, or a named class with *byte = -1.
static int class_byte(pattern_parser *p, int *byte, pattern_set *s) {
	if (!more(p)) return fail(p, "the class is not closed; add ]");
	*byte = p->text.ptr[p->at++];
	if (*byte >= 0x80) return fail(p, "a class holds ASCII characters only; use (a|b)");
	return *byte == '\\' ? escape(p, byte, s) : 1;
}

static int parse_class(pattern_parser *p) {
	pattern_set set = {0};
	int low, high, first = 1, negate = next_is(p, '^');
	p->at += negate;
	for (; first || !next_is(p, ']'); first = 0) { // a ] that comes first is a member
		if (!class_byte(p, &low, &set)) return 0;
		high = low;
		if (next_is(p, '-') && p->at + 1 < p->text.len && p->text.ptr[p->at + 1] != ']') {
			p->at++;
			if (!class_byte(p, &high, &set)) return 0;
			if (low < 0 || high < low) return fail(p, "the range of the class is the wrong way round");
		}
		for (int b = low; b >= 0 && b <= high; b++) set_add(&set, (uint8_t)b);
	}
	p->at++;
	return emit_class(p, &set, negate);
}

static int parse_alternatives(pattern_parser *p, int depth);

static int parse_group(pattern_parser *p, int depth) {
	if (next_is(p, '?')) return fail(p, "groups with (? are not known");
	if (depth == PATTERN_DEPTH) return fail(p, "groups are nested too deeply");
	if (!parse_alternatives(p, depth + 1)) return 0;
	if (!next_is(p, ')')) return fail(p, "the group is not closed; add )");
	p->at++;
	return 1;
}

static int parse_escape(pattern_parser *p) {
	pattern_set set = {0};
	int byte;
	if (!escape(p, &byte, &set)) return 0;
	return byte >= 0 ? emit_byte(p, (uint8_t)byte) : emit_class(p, &set, 0);
}

static int parse_atom(pattern_parser *p, int depth) {
	tr_bytes rest = tr_from(p->text, p->at);
	uint8_t b = rest.ptr[0];
	p->at++;
	switch (b) {
	case '.': return emit(p, pattern_len, OP_ANY, 0, 0);
	case '^': return emit(p, pattern_len, OP_START, 0, 0);
	case '$': return emit(p, pattern_len, OP_END, 0, 0);
	case '[': return parse_class(p);
	case '(': return parse_group(p, depth);
	case '\\': return parse_escape(p);
	case '*': case '+': case '?': p->at--; return fail(p, "there is nothing to repeat; write \\ before it to mean the character");
	case '{': p->at--; return fail(p, "counted repetition is not known; write \\{ to mean the character");
	}
	int32_t n = tr_utf8(rest);
	for (int32_t i = 1; i < n; i++, p->at++)
		if (!emit_byte(p, rest.ptr[i - 1])) return 0;
	return emit_byte(p, rest.ptr[n > 1 ? n - 1 : 0]);
}

// parse_repeat reads *, + or ? after the fragment that begins at start.
static int parse_repeat(pattern_parser *p, int32_t start) {
	int32_t n = pattern_len - start;
	uint8_t b = more(p) ? p->text.ptr[p->at] : 0;
	if (b != '*' && b != '+' && b != '?') return 1;
	p->at++;
	if (b == '+') return emit(p, pattern_len, OP_SPLIT, 0, -n);
	if (!emit(p, start, OP_SPLIT, 0, n + (b == '*' ? 2 : 1))) return 0;
	return b == '?' || emit(p, pattern_len, OP_JUMP, 0, -(n + 1));
}

static int parse_sequence(pattern_parser *p, int depth) {
	while (more(p) && !next_is(p, '|') && !next_is(p, ')')) {
		int32_t start = pattern_len;
		if (!parse_atom(p, depth) || !parse_repeat(p, start)) return 0;
	}
	return 1;
}

static int parse_alternatives(pattern_parser *p, int depth) {
	int32_t start = pattern_len;
	if (!parse_sequence(p, depth)) return 0;
	while (next_is(p, '|')) {
		p->at++;
		// SPLIT to the right side, left side, JUMP over the right side.
		int32_t left = pattern_len - start;
		if (!emit(p, start, OP_SPLIT, 0, left + 2)) return 0;
		int32_t over = pattern_len;
		if (!emit(p, over, OP_JUMP, 0, 0) || !parse_sequence(p, depth)) return 0;
		pattern_program[over].jump = (int16_t)(pattern_len - over);
	}
	return 1;
}

// ---------------------------------------------------------------------------
// The machine: the set of instructions that wait for the next byte.

typedef struct {
	int16_t at[PATTERN_PROGRAM];
	int32_t len;
} pattern_threads;

static pattern_threads pattern_lists[2];
static uint32_t pattern_seen[PATTERN_PROGRAM]; // the generation that reached it last
static uint32_t pattern_generation;

// follow adds every instruction that is reached from pc without reading a byte. It
// returns 1 if the match is among them.
static int follow(pattern_threads *list, int32_t pc, int at_start, int at_end) {
	static int16_t stack[PATTERN_PROGRAM + 1];
	int32_t depth = 0;
	stack[depth++] = (int16_t)pc;
	while (depth > 0) {
		pc = stack[--depth];
		while (pattern_seen[pc] != pattern_generation) {
			pattern_inst i = pattern_program[pc];
			pattern_seen[pc] = pattern_generation;
			if (i.op == OP_MATCH) return 1;
			if (i.op == OP_JUMP) {
				pc += i.jump;
			} else if (i.op == OP_SPLIT) {
				stack[depth++] = (int16_t)(pc + i.jump);
				pc++;
			} else if ((i.op == OP_START && at_start) || (i.op == OP_END && at_end)) {
				pc++;
			} else {
				if (i.op < OP_START) list->at[list->len++] = (int16_t)pc;
				break;
			}
		}
	}
	return 0;
}

static int accepts(pattern_inst i, uint8_t b) {
	if (i.op == OP_CLASS) return set_has(&pattern_classes[i.arg], b);
	if (i.op == OP_ANY) return b != '\n';
	return i.arg == (pattern_fold && is_letter(b) ? b | 0x20 : b);
}

// find_first collects the bytes that a match can start with. A pattern that can
// start at an edge of the text, or match nothing, has no such set.
static void find_first(void) {
	pattern_first = (pattern_set){0};
	pattern_first_known = 1;
	pattern_lists[0].len = 0;
	pattern_generation++;
	if (follow(&pattern_lists[0], 0, 1, 1)) {
		pattern_first_known = 0;
		return;
	}
	for (int32_t t = 0; t < pattern_lists[0].len; t++)
		for (int b = 0; b < 256; b++)
			if (accepts(pattern_program[pattern_lists[0].at[t]], (uint8_t)b)) set_add(&pattern_first, (uint8_t)b);
}

// pattern_compile compiles text as the pattern. It returns NULL, or what is wrong,
// and in *at where.
static const char *pattern_compile(tr_bytes text, int ignore_case, int32_t *at) {
	pattern_parser p = {text, 0, NULL};
	pattern_len = pattern_class_count = 0;
	pattern_fold = ignore_case;
	if (parse_alternatives(&p, 0) && more(&p)) fail(&p, "there is no group to close; write \\) to mean the character");
	if (!p.error) emit(&p, pattern_len, OP_MATCH, 0, 0);
	if (!p.error) find_first();
	*at = p.at;
	return p.error;
}

// pattern_matches returns whether the pattern matches anywhere in text.
static int pattern_matches(tr_bytes text) {
	pattern_threads *now = &pattern_lists[0], *then = &pattern_lists[1];
	now->len = 0;
	pattern_generation++;
	for (int32_t i = 0;; i++) {
		if (now->len == 0 && pattern_first_known) {
// Most of a long text is skipped here, and hosts may charge for each round of a
// loop.
#pragma clang loop unroll_count(8)
			while (i < text.len && !set_has(&pattern_first, text.ptr[i])) i++;
			if (i == text.len) return 0;
			pattern_generation++; // instructions seen so far were seen at another place
		}
		int at_end = i == text.len;
		if (follow(now, 0, i == 0, at_end)) return 1;
		if (at_end) return 0;
		then->len = 0;
		pattern_generation++;
		for (int32_t t = 0; t < now->len; t++) {
			int32_t pc = now->at[t];
			if (accepts(pattern_program[pc], text.ptr[i]) && follow(then, pc + 1, 0, i + 1 == text.len)) return 1;
		}
		pattern_threads *swap = now;
		now = then;
		then = swap;
	}
}

#endif // PATTERN_H
