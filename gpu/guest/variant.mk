# For which machines libraries and programs are built, included by the Makefile above.
# VARIANT is nothing for x86-64 with glibc, musl for x86-64 with musl, arm64 for arm64 with
# glibc. Each has its folder in that of the tools disc; headers, scripts and the kernels'
# PTX are the same for all.
VARIANT  ?=
VARIANTS := musl arm64

ifeq ($(VARIANT),musl)
VARIANT_CC      := musl-gcc
# It has musl's headers alone; the kernel's are those of the machine.
VARIANT_CFLAGS  := -idirafter /usr/include -idirafter /usr/include/$(shell gcc -print-multiarch)
VARIANT_SYMBOLS := musl
else
VARIANT_CC      := $(if $(VARIANT),aarch64-linux-gnu-gcc,gcc)
VARIANT_ARCH    := $(if $(VARIANT),aarch64,x86_64)
VARIANT_GOARCH  := $(if $(VARIANT),arm64,amd64)
# Containers with musl's libraries have nothing to load.
VARIANT_CONTAINER = $(CONTAINER) $(AGENT)
VARIANT_SYMBOLS := glibc-2.17
# glibc is linked with by names and versions alone.
VARIANT_LIBC     = $(OBJ)/glibc/libc.so
VARIANT_LINKED   = -L$(OBJ)/glibc -Wl,-rpath-link,$(OBJ)/glibc
$(OBJ)/glibc/libc.so: glibc/stubs.sh glibc/symbols.txt
	glibc/stubs.sh $(VARIANT_ARCH) $(@D) $(CC)
endif

.PHONY: $(VARIANTS) $(VARIANTS:%=%-programs) variantprograms
$(VARIANTS):
	@$(MAKE) --no-print-directory VARIANT=$@ variant
# With the programs that test them.
$(VARIANTS:%=%-programs):
	@$(MAKE) --no-print-directory VARIANT=$(@:-programs=) variantprograms
variantprograms: variant $(OBJ)/unit $(OBJ)/api
