# Basalt. The two commands a stranger needs:
#
#   make demo    set up, start one node, run the main job, show it
#   make test    set up, run every test
#
# Everything built lands under build/.

BUILD := $(CURDIR)/build
TOOLS := $(BUILD)/tools
GO    ?= go
export BASALT_BUILD := $(BUILD)
# Without the tree's own path in what is compiled, Go's build cache serves every
# clone on a machine.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS 2>/dev/null) -trimpath)
# go-nvml's header is full of deprecation marks.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations

# Compiler, linker and linters are done before what they leave behind is worth
# collecting: a sixth to a third less of a processor, for 1.6 GB more of memory.
TOOLS_GC := GOGC=400

VERSION := $(shell installer/deb/version.sh 2>/dev/null || echo dev)

GOLANGCI_VERSION := v2.15.0
CODEGEN_VERSION  := v2.8.2
NFPM_VERSION     := v2.43.4

.DEFAULT_GOAL := build
.PHONY: help build setup prepared guest kernels test-vendor images testguest libvirtd tools lint check generated test test-long test-times planted demo demo-cluster bench bench-gpu-path bench-soft fuzz gpu-check deb iso whmcs php-lint ui ui-check clean

help:
	@sed -n "s/^## /  make /p" $(MAKEFILE_LIST)

## build: the binaries with the portal in them, and the guest's libraries
build: guest ui
	@mkdir -p $(BUILD)/bin
	$(TOOLS_GC) $(GO) build -ldflags '-X main.version=$(VERSION)' -o $(BUILD)/bin/ ./appliance/cmd/...

guest:
	@$(MAKE) --no-print-directory -C gpu/guest BUILD=$(BUILD)

## setup: Debian packages (says what it installs; nothing to do the second time)
setup:
	@installer/dev/setup.sh

# What checks and tests need, two at a time: the portal's bundler and npm use one
# processor.
prepared: setup
	@$(MAKE) --no-print-directory -j2 tools build

tools: $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION) $(TOOLS)/oapi-codegen-$(CODEGEN_VERSION) $(TOOLS)/nfpm-$(NFPM_VERSION)
# From installer/dev/cache.sh where the same Go has built the same version before.
CACHED_TOOL = installer/dev/cache.sh $(1) "$$($(GO) env GOVERSION GOOS GOARCH | tr '\n' -)$(2)" $(TOOLS) $(1) -- \
	sh -c 'GOBIN=$$1 $(GO) install $(3)@$(2)' install
$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION): | setup
	@echo "setup: golangci-lint $(GOLANGCI_VERSION) (building it takes minutes, once on a machine)"
	@$(call CACHED_TOOL,golangci-lint,$(GOLANGCI_VERSION),github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
	@touch $@
$(TOOLS)/oapi-codegen-$(CODEGEN_VERSION): | setup
	@$(call CACHED_TOOL,oapi-codegen,$(CODEGEN_VERSION),github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen)
	@touch $@

$(TOOLS)/nfpm-$(NFPM_VERSION): | setup
	@$(call CACHED_TOOL,nfpm,$(NFPM_VERSION),github.com/goreleaser/nfpm/v2/cmd/nfpm)
	@touch $@

## check: build, vet, lint, import rules, generated files fresh, unit tests
check: export BEGAN := $(shell date +%s)
check: prepared
	@LAYER=check SETUP_TOOK=$$(($$(date +%s) - $(BEGAN))) installer/dev/test.sh

# vet is one of its linters. It waits for a run of another checkout, as two of them may
# need more memory than there is.
lint: tools php-lint
	$(TOOLS_GC) $(TOOLS)/golangci-lint run --allow-serial-runners ./...

# WHMCS runs the module's files as they are: each has to parse.
php-lint: setup
	@mkdir -p $(BUILD)
	@find billing/whmcs -name '*.php' -print0 | xargs -0 -n1 php -l >$(BUILD)/php-lint.txt || { cat $(BUILD)/php-lint.txt; exit 1; }

# The generators' output must be what is in the tree.
generated: tools
	@installer/dev/generated.sh

LAYER := test
## test: every test in its short form, on real libvirt and QEMU; RUN=NAME one story, PKG=REGEXP packages by path, CHANGED=1 what the change can reach (docs/tests.md)
test: export BEGAN := $(shell date +%s)
test: prepared
	@LAYER=$(LAYER) SETUP_TOOK=$$(($$(date +%s) - $(BEGAN))) installer/dev/test.sh

## test-long: every test in its long form: all faults, both firmwares, thousands of simulated clusters, fuzzing
test-long: export BASALT_LONG := 1
test-long: LAYER := long
test-long: test
	@[ -n "$(RUN)$(CHANGED)$(PKG)" ] || LAYER=$(LAYER) $(MAKE) --no-print-directory fuzz

## test-times: the last run's times into the tree, as what later runs are compared with
test-times:
	@$(GO) run ./appliance/test/testrun -record

## planted: plants mistakes in copies of the tree and looks which test catches each
planted: setup build
	@installer/dev/planted.sh

## demo: the main job, shown; ONCE=1 ends by itself, 0 only if all was right
demo:
	@installer/dev/demo.sh

## demo-cluster: three nodes on this machine, one dies and comes back; ONCE=1 as above
demo-cluster:
	@installer/dev/demo-cluster.sh

## kernels: the PTX in the tree, made again from its sources with clang
kernels: setup
	@$(MAKE) --no-print-directory -B -C gpu/soft/testdata/kernels
	@$(MAKE) --no-print-directory -C gpu/guest ptx blas-ptx
	@gpu/conformance/kernels/kernels.sh

## ui: the portal, ui/dist, which the next build embeds (installs Node.js where it is missing)
UI_SOURCES := $(shell find ui/src ui/public ui/scripts -type f 2>/dev/null) ui/index.html ui/vite.config.ts ui/package.json
# What the bundle is made of, and what else its checks read.
UI_MADE_OF  = ui/src ui/public ui/scripts ui/index.html ui/vite.config.ts ui/package.json ui/package-lock.json ui/tsconfig.json api/openapi.yaml
UI_CHECKED  = $(UI_MADE_OF) ui/e2e ui/eslint.config.js ui/.prettierrc.json ui/.prettierignore api/.spectral.yaml docs/glossary.md
NODE_BIN    = $(dir $(shell installer/dev/node.sh path))
# Makes $(2) in $(3) by the script $(4), or has it from where the same sources made it before.
UI_CACHED   = export PATH="$(NODE_BIN):$$PATH" && key=$$(ui/scripts/hash.sh $(5)) && \
	installer/dev/cache.sh $(1) "$$key" $(3) $(2) -- node ui/scripts/$(4)
ui: ui/dist/index.html.gz
ui/dist/index.html.gz: ui/node_modules/.basalt $(UI_SOURCES) api/openapi.yaml
	@$(call UI_CACHED,portal,dist,ui,build.mjs,$(UI_MADE_OF))
	@touch $@

# npm ci only when the lock file has changed, and once on a machine.
ui/node_modules/.basalt: ui/package-lock.json
	@installer/dev/node.sh
	@export PATH="$(NODE_BIN):$$PATH" && key=$$(ui/scripts/hash.sh ui/.npmrc ui/package.json $<) && \
	installer/dev/cache.sh node-modules "$$key" ui node_modules -- sh -c 'echo "setup: npm ci in ui"; \
		cp ui/.npmrc ui/package.json ui/package-lock.json "$$2" && cd "$$2" && "$$1" ci --ignore-scripts --silent --no-audit --no-fund' \
		npm "$$(installer/dev/node.sh npm)"
	@touch $@

# The API's description, the portal's types, lint and component tests. What has passed passes again.
ui-check: ui/node_modules/.basalt
	@$(call UI_CACHED,portal-check,portal-checked,$(BUILD)/test,check.mjs,$(UI_CHECKED))

images:
	@installer/guest/build.sh
	@installer/guest/small/build.sh

testguest:
	@gpu/vhostgpu/testguest/build.sh

libvirtd:
	@installer/dev/libvirtd.sh start

## bench: medians, each with the ratio to its baseline
bench: setup build
	@installer/dev/bench.sh

## bench-gpu-path: what lies between a program and a GPU, over one that computes nothing; ROUNDS=N
bench-gpu-path: setup
	@installer/dev/bench-gpu-path.sh

## bench-soft: the soft GPU beside the same in C on the same processors; ROUNDS=N, ENGINE=automatic, interpreted or compiled
bench-soft: setup
	@installer/dev/bench-soft.sh

## fuzz: every fuzz target for FUZZTIME each
FUZZTIME ?= 20s
fuzz: setup
	@FUZZTIME=$(FUZZTIME) installer/dev/fuzz.sh

## gpu-check: one folder of binaries and tests for a machine with an NVIDIA card
gpu-check: setup build
	@gpu/conformance/pack.sh $(BUILD)/gpu-check

## test-vendor: NVIDIA's CUDA samples, pycuda, numba and PyTorch in a Debian root with non-free, on a soft GPU (hours); SAMPLES="PATTERN …", PROGRAMS=PATTERN some, CONTINUE=1 goes on
test-vendor: setup build
	@installer/dev/vendor/all.sh

## deb: Debian packages of what is built, in build/deb
deb: build $(TOOLS)/nfpm-$(NFPM_VERSION)
	@installer/deb/build.sh

## iso: the installation medium, build/basalt.iso (as root; FRESH=1: Debian anew)
iso: setup deb
	@installer/iso/build.sh $(if $(FRESH),--fresh)

## whmcs: the module for WHMCS, build/basalt-whmcs.zip
whmcs: php-lint
	@$(GO) run ./billing/whmcs/pack billing/whmcs $(BUILD)/basalt-whmcs.zip
	@echo "$(BUILD)/basalt-whmcs.zip: unpack it over WHMCS's directory (docs/billing.md)"

## clean: removes build/; installer/dev/cache.sh keeps images and tools elsewhere ("installer/dev/cache.sh dir" says where)
clean:
	rm -rf $(BUILD)
