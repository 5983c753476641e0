// Compiles QuickJS with its check of the stack. QuickJS leaves that check out for WASI,
// where an overflow of the stack would trap or, worse, write over data; here a script gets a
// RangeError instead. The check works because the stack is in linear memory.
#include <quickjs/cutils.h>
#include <time.h>
#undef __wasi__
// Without threads and with a switch in the interpreter's loop, whose frames are then
// smaller: scripts can nest more deeply within the host's limit stack.
#define EMSCRIPTEN 1
// A frame of that loop takes little of the stack in linear memory for what it takes of the
// host's. The padding makes the proportion that of the other frames.
#undef alloca
#define alloca(size) __builtin_alloca((size) + 96)
#include <quickjs/quickjs.c>
