# make run     builds and runs the quickstart
# make test    passes the tests that need no toolchain of guests
# make build   leaves bin/terrarium
GO ?= go

.DEFAULT_GOAL := build

include guests.mk

.PHONY: build dist dist-c run test test-every test-kits test-pure test-device test-gateway soak test-race test-fresh test-crash test-sim fuzz bench bench-growth generate site pictures test-page lint clean mutants test-arch

# With a C compiler, SQLite is C; without, it is the translation to Go. Go looks for the
# compiler itself, and turns cgo off if there is none.
build:
	$(GO) build -o bin/terrarium ./cmd/terrarium

run: build
	bin/terrarium run examples/quickstart --input lines=examples/quickstart/lines.txt --output report --exit-when-idle

# The tests that say the same on every machine: they compile creatures in Go and JavaScript
# only, which need nothing but terrarium. lint has go vet, also the part of it that go test
# would repeat. The packages that take longest come first, so that none of them is left for one
# core at the end. Three run at once, because some wait for disks and processes.
LONGEST = ./sqlitestore ./cmd/terrarium ./internal/docstest ./sdk ./sdk/internal/kits ./conformance/hosts ./recipes/policy ./conformance/hostile ./engine
test:
	$(GO) test -p 3 -vet=off -timeout 30m $(LONGEST) ./...
	@$(GO) run ./internal/skipped

# Long tests, and all cases of the tests that have many, of which make test has some: stores at
# every failpoint, commands on every kind of damage, scripts, pages, plans, attributes, hostile
# modules. A test proves that every package that has such tests is here or in test-kits.
# test-race, test-fresh and test-pure have all of them too.
test-every: export TERRARIUM_EVERY = 1
test-every:
	$(GO) test -vet=off -timeout 30m ./sqlitestore ./cmd/terrarium ./internal/docstest . ./recipes ./recipes/policy ./conformance/hostile ./engine ./engine/storetest

# The tests that need the toolchains of guests: the kits, and the pages and commands that
# compile creatures. A language whose toolchain is missing is skipped by name; in CI, where
# TERRARIUM_KITS is all, it fails. make toolchains installs them. All cases of the kits are
# here, of which make test has some.
test-kits: export TERRARIUM_KITS ?= installed
test-kits: export TERRARIUM_EVERY = 1
test-kits:
	$(GO) test -vet=off -timeout 30m ./sdk ./sdk/internal/kits ./cmd/internal/project ./conformance/creatures ./conformance/hosts
	$(GO) test -vet=off -timeout 30m -run 'TestDev' ./cmd/terrarium
	$(GO) test -vet=off -timeout 30m -run 'TestCommands/(docs|sdk)/(tutorial|how-to|c|cpp|zig)/(creature|first-c|find|write|wire|README)' ./internal/docstest

# The page of terrarium serve in a real browser, which make toolchains installs.
test-page:
	TERRARIUM_BROWSER=1 $(GO) test -vet=off -timeout 30m ./internal/pagetest

# SQLite without a C compiler: the tests of stores, and processes that are killed on
# sessions that both libraries use in turn.
test-pure: export TERRARIUM_EVERY = 1
test-pure:
	CGO_ENABLED=0 $(GO) test -vet=off -timeout 30m ./sqlitestore/... ./operations
	CGO_ENABLED=0 $(GO) build -o bin/terrarium-pure ./cmd/terrarium
	TERRARIUM_OTHER=$(CURDIR)/bin/terrarium-pure $(GO) test -vet=off -count=1 -timeout 30m -run 'Kill' ./cmd/terrarium

# Programs of make dist for other Linux machines, in the emulators of the package qemu-user:
# they print what the one for this machine prints, with the same fuel, and share its sessions.
# The tests of all packages compile where an int has 32 bits.
test-arch: test-device
	CGO_ENABLED=0 GOARCH=arm GOARM=7 $(GO) vet -unsafeptr ./...
	TERRARIUM_ARCH=1 $(GO) test -vet=off -timeout 30m -count=1 ./internal/archtest

# The program of examples/embed/device, built for 32-bit ARM without cgo, killed under qemu-arm.
test-device:
	TERRARIUM_ARCH=1 $(GO) test -vet=off -timeout 30m -count=1 -run 'TestDeviceOnARM' ./internal/docstest

# Seven days of the gateway of examples/embed, which takes a while.
test-gateway:
	GATEWAY_HOURS=168 $(GO) test -C examples/embed -vet=off -count=1 -timeout 90m -run 'TestGatewayForHours' -v ./gateway

# Everything at once for hours, with books kept outside and the memory, files and latencies of
# the process as bin/soak/soak.svg; see cmd/internal/soak.
HOURS ?= 1
soak:
	$(GO) run ./cmd/internal/soak -for $(HOURS)h

# Static programs for other machines, without a C compiler for them.
DIST = linux/amd64 linux/arm64 linux/arm/7 linux/riscv64 darwin/amd64 darwin/arm64 windows/amd64 freebsd/amd64
dist: $(DIST:%=bin/dist/%)
	@ls -l bin/dist

.PHONY: $(DIST:%=bin/dist/%)
$(DIST:%=bin/dist/%): bin/dist/%:
	CGO_ENABLED=0 GOOS=$(word 1,$(subst /, ,$*)) GOARCH=$(word 2,$(subst /, ,$*)) GOARM=$(word 3,$(subst /, ,$*)) \
		$(GO) build -trimpath -ldflags='-s -w' -o bin/dist/terrarium-$(subst /,-,$*)$(if $(findstring windows,$*),.exe) ./cmd/terrarium

# The same for Linux, with SQLite in C. Zig compiles it, and links its C library statically: the
# Zig of make toolchains, or that of the Python package ziglang.
ZIGCC ?= $(or $(wildcard $(CURDIR)/bin/toolchains/python/ziglang/zig),python3 -m ziglang)
DIST_C = linux/amd64 linux/arm64 linux/arm/7 linux/riscv64
ZIG_TARGET = $(patsubst amd64,x86_64-linux-musl,$(patsubst arm64,aarch64-linux-musl,$(patsubst arm,arm-linux-musleabihf,$(patsubst riscv64,riscv64-linux-musl,$(word 2,$(subst /, ,$*))))))
dist-c: $(DIST_C:%=bin/dist-c/%)
	@ls -l bin/dist-c

.PHONY: $(DIST_C:%=bin/dist-c/%)
$(DIST_C:%=bin/dist-c/%): bin/dist-c/%:
	CGO_ENABLED=1 CGO_CFLAGS='-O2 -g0' CC='$(ZIGCC) cc -target $(ZIG_TARGET)' GOOS=$(word 1,$(subst /, ,$*)) GOARCH=$(word 2,$(subst /, ,$*)) GOARM=$(word 3,$(subst /, ,$*)) \
		$(GO) build -trimpath -ldflags='-s -w -linkmode external -extldflags "-static -Wl,-s"' -o bin/dist-c/terrarium-$(subst /,-,$*) ./cmd/terrarium

# The race detector takes several times the time, so that packages are left out which
# have nothing for it: readers, validators and rewriters of modules, which start no
# goroutine (host/wasmbin, compilecost); tests of texts (prose, rules, house);
# tests that run what toolchains have built, and what go build builds without the
# detector (docstest, sdk, kits). The creatures of sdk are run by the same engine
# as those of plugins and conformance.
MODULE = github.com/seed47132306/terrarium
NOT_RACED = host/wasmbin host/wasmbin/meter host/wasmbin/internal/wasmgen host/internal/compilecost \
	internal/prose internal/rules internal/house internal/docstest internal/pagetest sdk sdk/internal/kits
# Tests that do one thing after the other, beside others that do the same at once:
# hostile modules one by one (TestAllAtOnce has them together), and commands on damaged
# session directories (TestStrangersSessions has every command). TestDev waits for compilers
# most of the time; TestDevRecipe and others run the same command. Wrong hosts
# and stores (TestEveryRuleHasAMutant) do what the right ones do. Engines are compared one turn
# after the other (TestEnginesAreTheSame, TestFuelEndsAtTheSamePlace).
NOT_RACED_TESTS = TestDev TestEnginesAreTheSame TestFuelEndsAtTheSamePlace TestEveryRequirementHasAMutant TestEveryRuleHasAMutant TestGallery TestSizeAloneIsRefused TestTruncatedAnywhere \
	TestStrangersColumns TestStrangersTexts TestStrangersSessionsFromOutside
test-race: export TERRARIUM_EVERY = 1
test-race:
	$(GO) test -race -vet=off -timeout 30m -skip "^($$(echo $(NOT_RACED_TESTS) | tr ' ' '|'))\$$" \
		$(filter-out $(NOT_RACED:%=$(MODULE)/%),$(shell $(GO) list ./...))

# Linear memory is a cache: a fresh instance for every turn changes nothing. The packages
# are those whose tests use internal/fresh, which internal/rules checks; in the others, the
# variable changes nothing, and the conformance of creatures is always tested both ways.
# In sqlitestore, only the processes that are killed use it. The commands that meet
# damaged session directories do not.
test-fresh: export TERRARIUM_EVERY = 1
test-fresh:
	TERRARIUM_FRESH=1 $(GO) test -vet=off -timeout 30m -skip '^TestStrangers' ./engine ./operations ./serve ./cmd/terrarium ./internal/docstest
	TERRARIUM_FRESH=1 $(GO) test -vet=off -timeout 30m -run 'Kill' ./sqlitestore

# More of what make test has a short version of, and from new seeds: the tests above
# say the same at every run. What these find is kept as a case; see internal/seeded.
test-crash: export TERRARIUM_EVERY = 1
test-crash:
	RAPID_SEED=0 TERRARIUM_KILLS=800 $(GO) test -count=1 -timeout 60m -run 'Kill' ./sqlitestore
	RAPID_SEED=0 TERRARIUM_KILLS=100 $(GO) test -count=1 -timeout 60m -run 'Kill' ./cmd/terrarium
	RAPID_SEED=0 TERRARIUM_SEEDS=60 $(GO) test -count=1 -timeout 60m -run 'PowerLoss|Faults|Fails|Storage|Undone|Durable|OnFullDisk|Loose|WhatItSeems' ./sqlitestore
	RAPID_SEED=0 TERRARIUM_SEEDS=300 $(GO) test -count=1 -timeout 60m -run 'SimulationOfBacklogs' ./sqlitestore
	RAPID_SEED=0 TERRARIUM_SEEDS=500 $(GO) test -count=1 -timeout 60m -run 'Durable|OutlivesTheEngine|ForkAtAnyTime|APlanSays|WhatRunningHasChanged|RootsGive' ./engine
	TERRARIUM_BACKLOG=1000000 $(GO) test -count=1 -timeout 60m -run 'FarBehind' -v ./engine
	TERRARIUM_TURNS=100000 $(GO) test -count=1 -timeout 60m -run 'JSMemoryIsBounded|MemoryOfKits' ./plugins ./sdk

SEEDS ?= 200000
BACKLOG_SEEDS ?= 2000
test-sim:
	RAPID_SEED=0 TERRARIUM_SEEDS=$(SEEDS) $(GO) test -count=1 -timeout 60m -run 'Simulation' ./engine
	RAPID_SEED=0 TERRARIUM_SEEDS=$(BACKLOG_SEEDS) $(GO) test -count=1 -timeout 60m -run 'SimulationOfBacklogs' ./sqlitestore

FUZZTIME ?= 30s
fuzz:
	@for d in $$(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n 1 dirname | sort -u); do \
		for f in $$($(GO) test -list '^Fuzz' $$d | grep '^Fuzz'); do \
			echo "$$d $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$d || exit 1; \
		done; done

# The pictures of docs/how-to/watch-in-the-browser.md, and those of all views in bin/shots.
PICTURES = graph-light merged creature-dark turn again lineage-dark
pictures:
	TERRARIUM_BROWSER=1 TERRARIUM_SHOTS=$(CURDIR)/bin/shots $(GO) test -count=1 ./internal/pagetest
	cp $(PICTURES:%=bin/shots/page-%.webp) docs/pictures/

# What it costs, beside what it is compared with. COUNT=6 for benchstat.
COUNT ?= 1
bench:
	$(GO) run ./internal/bench -count $(COUNT)

# Programs that are wrong by one operator, and which of them the tests do not notice: some
# minutes for the first, and seconds for each further one that is caught. conformance/RATIONALE.md
# has the method and the last figures.
MUTANTS ?= 20
MUTANTS_SEED ?= 1
mutants:
	nice -n 15 $(GO) run ./internal/mutants -n $(MUTANTS) -seed $(MUTANTS_SEED) ./host
	nice -n 15 $(GO) run ./internal/mutants -n $(MUTANTS) -seed $(MUTANTS_SEED) ./engine

# How the topology's operations grow from 10,000 to 1,000,000 creatures: some
# minutes and some gigabytes of memory, so make bench leaves it out.
bench-growth:
	$(GO) run ./internal/bench -growth -count $(COUNT)

generate:
	$(GO) generate ./...

# The documentation as a site in bin/site, with its links checked. Nothing else needs Hugo.
HUGO ?= $(or $(shell command -v hugo),$(shell $(GO) env GOPATH)/bin/hugo)
site:
	@command -v $(HUGO) >/dev/null || { echo "Hugo is needed: CGO_ENABLED=0 go install github.com/gohugoio/hugo@v0.164.0"; exit 1; }
	$(HUGO) --config site/hugo.toml --destination bin/site --cleanDestinationDir --noBuildLock --panicOnWarning --quiet
	TERRARIUM_SITE=$(CURDIR)/bin/site $(GO) test -count=1 -run 'TestSite$$' ./internal/docstest
	@echo "Open bin/site/index.html."

# Without bin, where make toolchains may be installing at the same time.
FORMATTED = $(wildcard *.go) $(filter-out bin/,$(wildcard */))
lint:
	@test -z "$$(gofmt -l $(FORMATTED))" || { echo "gofmt would change:"; gofmt -l $(FORMATTED); exit 1; }
	$(GO) vet ./...

clean:
	rm -rf bin
