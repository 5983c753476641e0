// Compiles QuickJS with its check of the stack. QuickJS leaves that check out for WASI,
// where an overflow of the stack would trap or, worse, write over data; here a script gets a
// RangeError instead. The check works because the stack is in linear memory.
#define __STDC_NO_ATOMICS__ 1 // no threads
#include "quickjs/cutils.h"
#include <time.h>
#undef __wasi__
#include "quickjs/quickjs.c"
