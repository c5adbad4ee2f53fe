# Nothing here but interop needs more than Go. `make help` says what there is.
GO       ?= go
FUZZTIME ?= 30s
INTEROP  ?= $(or $(HOLDFAST_FS_SAFE),$(HOME)/.cache/holdfast-interop)

.PHONY: help check test race fuzz evidence arm64 interop bench demo release man api

help: ## print this help
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

check: ## everything that .ci/run does: formatting, vet, staticcheck, cross builds, demo, fuzz, race, tests
	.ci/run

test: ## run every test
	$(GO) test ./...

race: ## run every test under the race detector (needs a C compiler)
	$(GO) test -race ./...

fuzz: ## run each fuzz target for FUZZTIME (30s)
	.ci/fuzz $(FUZZTIME)

evidence: ## explore v2's crashes, errors and interleavings, and print what was explored (two minutes)
	HOLDFAST_REQUIRE_ALL=1 $(GO) test -v -run '^Test(Crash|Fault|Uncertain|Interleave)' ./v2

arm64: ## run the tests of the store on linux/arm64 under qemu (needs qemu-user-static and root)
	.ci/arm64

interop: ## run v1 beside the npm package that it shares its directories with (needs npm)
	.ci/npm "$(INTEROP)"
	HOLDFAST_FS_SAFE="$(INTEROP)" $(GO) test -run 'TestInterop' -v ./v1

bench: ## measure the store beside its peers, and write docs/benchmarks.md (ten minutes)
	$(GO) -C bench run . -package "$(INTEROP)" -out ../docs/benchmarks.md

release: ## build the command for all systems into dist/, with SHA256SUMS; a commit gives the same bytes anywhere
	.ci/release

man: ## write the manual pages into dist/man
	mkdir -p dist/man
	$(GO) run ./cmd/holdfast tree | $(GO) -C internal/mandoc run . -date $$(date -u +%Y-%m-%d) $(CURDIR)/dist/man

api: ## list anew what the packages export, after a change that is meant
	$(GO) test ./internal/api -update

demo: ## two workers, one killed inside a message, one inside a commit; nothing is lost
	$(GO) run ./cmd/holdfast demo
