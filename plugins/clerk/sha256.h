// SHA-256, as in FIPS 180-4, of data that is completely in memory.
#ifndef SHA256_H
#define SHA256_H

#include "bare.h"

static const uint32_t sha256_round[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
	0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotated(uint32_t x, int by) { return x >> by | x << (32 - by); }

// sha256_block adds 64 bytes to the sum.
static void sha256_block(uint32_t h[8], const uint8_t *p) {
	uint32_t w[64], s[8];
	for (int i = 0; i < 16; i++, p += 4) w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];
		w[i] = w[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[i - 7] + (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
	}
	memcpy(s, h, sizeof s);
	for (int i = 0; i < 64; i++) {
		uint32_t e = s[4], a = s[0];
		uint32_t x = s[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + sha256_round[i] + w[i];
		uint32_t y = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof s[0]);
		s[4] += x;
		s[0] = x + y;
	}
	for (int i = 0; i < 8; i++) h[i] += s[i];
}

// sha256 puts the sum of bytes, in lower-case hex.
static void sha256(tr_bytes bytes, tr_buffer *out) {
	static const char hex[] = "0123456789abcdef";
	uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	uint8_t last[128] = {0};
	tr_bytes rest = bytes;
	for (; rest.len >= 64; rest = tr_from(rest, 64)) sha256_block(h, rest.ptr);
	if (rest.len > 0) memcpy(last, rest.ptr, (size_t)rest.len);
	last[rest.len] = 0x80;
	int end = rest.len < 56 ? 64 : 128; // room for the length
	for (int i = 0; i < 8; i++) last[end - 1 - i] = (uint8_t)((uint64_t)bytes.len * 8 >> (8 * i));
	for (int i = 0; i < end; i += 64) sha256_block(h, last + i);
	for (int i = 0; i < 64; i++) tr_put_byte(out, (uint8_t)hex[h[i / 8] >> (28 - 4 * (i % 8)) & 15]);
}

#endif // SHA256_H
