// fault ends its turn in the way that the kind selects, each on a line that a comment
// names for the test. It is kept built, with debugging information:
//
//	clang-14 --target=wasm32 -O1 -g -ffreestanding -fdebug-compilation-dir=/src -c fault.c -o fault.o
//	wasm-ld-14 --no-entry --stack-first -z stack-size=16384 fault.o -o fault.wasm
//	rm fault.o


static volatile int divisor;
static volatile int never = -1;

__attribute__((noinline)) static int divide(int a) {
	return a / divisor; // here: divide
}

static inline __attribute__((always_inline)) int twice(int a) {
	return divide(a) * 2; // here: twice
}

__attribute__((noinline)) static int sink(int depth) {
	volatile int deeper = depth + 1;
	return sink(deeper) + divisor; // here: sink
}

__attribute__((noinline)) static int spin(int a) {
	for (;;) if ((divisor += a) == never) return divisor; // here: spin
}

__attribute__((noinline)) static int reach(unsigned at) {
	return *(volatile int *)at; // here: reach
}

__attribute__((noinline)) static int call(int (*f)(int), int a) {
	return f(a); // here: call
}

__attribute__((export_name("creature_handle"))) int creature_handle(int kind, int size) {
	switch (kind) {
	case 1: return twice(size); // here: case 1
	case 2: return reach(0xfffffff0u - size); // here: case 2
	case 3: __builtin_trap(); // here: case 3
	case 4: return sink(size); // here: case 4
	case 5: return spin(size + 1); // here: case 5
	case 6: return call((int (*)(int))(divisor + 1), size); // here: case 6
	}
	return 0;
}

__attribute__((export_name("terrarium_abi_v1"))) void terrarium_abi_v1(void) {}
