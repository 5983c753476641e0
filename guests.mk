# The creatures in plugins/ and the tools they are built with.

GO ?= go

.PHONY: guests guests-check digest toolchains

# Rebuilds the modules that are kept beside their sources. Other compiler
# versions than those of `make toolchains` give other bytes.
guests:
	$(GO) run ./plugins/internal/guests

# Builds them again elsewhere and fails with the name of one that differs.
guests-check:
	$(GO) run ./plugins/internal/guests -check

# Builds plugins/digest/digest.wasm, which is too large to be kept.
digest:
	$(GO) run ./plugins/internal/guests digest

TOOLCHAIN_PACKAGES = clang lld wasi-libc libclang-rt-14-dev-wasm32 wabt binaryen

# Installs the guest toolchains. Building and running terrarium needs none.
toolchains:
	@command -v apt-get >/dev/null || { \
		echo "make toolchains installs packages of Debian 12 with apt-get, and there is none here."; \
		echo "Install by other means: clang and lld 14 (as clang-14 and wasm-ld-14) and wabt."; exit 1; }
	@test "$$(id -u)" = 0 || { echo "make toolchains installs packages: run it as root, as in: sudo make toolchains"; exit 1; }
	apt-get update
	apt-get install -y --no-install-recommends $(TOOLCHAIN_PACKAGES)
