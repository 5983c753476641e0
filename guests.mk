# The creatures in plugins/ and the tools they are built with.

GO ?= go

.PHONY: guests guests-check natives natives-check digest kits foreign toolchains

# Rebuilds the modules that are kept beside their sources. Other compiler
# versions than those of `make toolchains` give other bytes.
guests:
	$(GO) run ./plugins/internal/guests

# Builds them again elsewhere and fails with the name of one that differs.
guests-check:
	$(GO) run ./plugins/internal/guests -check

# Translates the modules to Go, below plugins/native and for the tests of package host. It
# needs the Go command, and once the network for wasm2go, but no toolchain of guests.
natives:
	$(GO) run ./plugins/internal/natives

# Translates them again elsewhere and fails with the name of a file that differs.
natives-check:
	$(GO) run ./plugins/internal/natives -check

# Builds plugins/digest/digest.wasm, which is too large to be kept.
digest:
	$(GO) run ./plugins/internal/guests digest

# Builds the reference creatures of the kits whose toolchain is installed, into bin/kits.
kits:
	$(GO) run ./sdk/internal/kits/build

# Builds modules of other ecosystems, which a test offers to the suite for creatures. They
# do not contain where they were built.
FOREIGN = conformance/creatures/testdata/foreign
foreign: export RUSTFLAGS = --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=cargo --remap-path-prefix=$(HOME)/.rustup=rustup
foreign:
	for name in extism wapc proxy_wasm; do \
		cargo build --quiet --release --target wasm32-unknown-unknown --target-dir bin/foreign --manifest-path $(FOREIGN)/$$name/Cargo.toml && \
		install -m 644 bin/foreign/wasm32-unknown-unknown/release/foreign_$$name.wasm $(FOREIGN)/$$name.wasm && rm -f $(FOREIGN)/$$name/Cargo.lock || exit 1; \
	done

# chromium is for the tests of the page of terrarium serve, qemu-user for make test-arch.
TOOLCHAIN_PACKAGES = clang lld cmake wasi-libc libclang-rt-14-dev-wasm32 wabt binaryen chromium qemu-user
ZIG = 0.17.1
WASMTIME = 50.0.1
ASSEMBLYSCRIPT = 0.28.20
# For the test that highlights recipes as VS Code does.
TEXTMATE = vscode-textmate@9.3.2 vscode-oniguruma@2.0.1

# Installs the guest toolchains. Building and running terrarium needs none.
# Zig, AssemblyScript, wasmtime and the highlighter of VS Code go to bin/toolchains. Rust is that of rustup if it is there.
toolchains:
	@command -v apt-get >/dev/null || { \
		echo "make toolchains installs packages of Debian 12 with apt-get, and there is none here."; \
		echo "Install by other means: clang and lld 14 (as clang-14 and wasm-ld-14) and wabt; for the kits also"; \
		echo "Rust with the target wasm32-unknown-unknown, Zig $(ZIG) and AssemblyScript $(ASSEMBLYSCRIPT)."; exit 1; }
	@test "$$(id -u)" = 0 || { echo "make toolchains installs packages: run it as root, as in: sudo make toolchains"; exit 1; }
	apt-get update
	apt-get install -y --no-install-recommends $(TOOLCHAIN_PACKAGES)
	{ command -v rustup >/dev/null && rustup target add wasm32-unknown-unknown; } || \
		apt-get install -y --no-install-recommends cargo libstd-rust-dev-wasm32 lld
	python3 -m pip --version >/dev/null 2>&1 || apt-get install -y --no-install-recommends python3-pip
	test -x bin/toolchains/python/ziglang/zig -a -d bin/toolchains/python/wasmtime || \
		python3 -m pip install --quiet --upgrade --target bin/toolchains/python ziglang==$(ZIG) wasmtime==$(WASMTIME)
	command -v npm >/dev/null || apt-get install -y --no-install-recommends nodejs npm
	test -e bin/toolchains/node_modules/assemblyscript -a -e bin/toolchains/node_modules/vscode-textmate || \
		npm install --prefix bin/toolchains --no-save --no-audit --no-fund --ignore-scripts --loglevel error \
			assemblyscript@$(ASSEMBLYSCRIPT) $(TEXTMATE)
