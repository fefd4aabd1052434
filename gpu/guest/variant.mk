# The machines for which libraries and programs are built. The Makefile above includes this file.
# VARIANT is empty for x86-64 with glibc, musl for x86-64 with musl, and arm64 for arm64 with glibc.
# Each variant has a folder on the tools disc; headers, scripts and the kernels' PTX are the same for
# all.
VARIANT  ?=
VARIANTS := musl arm64

ifeq ($(VARIANT),musl)
VARIANT_CC      := musl-gcc
# musl-gcc has musl's headers only; the kernel's headers are the machine's.
VARIANT_CFLAGS  := -idirafter /usr/include -idirafter /usr/include/$(shell gcc -print-multiarch)
VARIANT_SYMBOLS := musl
else
VARIANT_CC      := $(if $(VARIANT),aarch64-linux-gnu-gcc,gcc)
VARIANT_ARCH    := $(if $(VARIANT),aarch64,x86_64)
VARIANT_GOARCH  := $(if $(VARIANT),arm64,amd64)
# Containers need glibc's libraries, so the container program is not built for musl.
VARIANT_CONTAINER = $(CONTAINER) $(AGENT)
VARIANT_SYMBOLS := glibc-2.17
# Linked in place of glibc: libraries with symbols and versions only.
VARIANT_LIBC     = $(OBJ)/glibc/libc.so
VARIANT_LINKED   = -L$(OBJ)/glibc -Wl,-rpath-link,$(OBJ)/glibc
$(OBJ)/glibc/libc.so: glibc/stubs.sh glibc/symbols.txt
	glibc/stubs.sh $(VARIANT_ARCH) $(@D) $(CC)
endif

.PHONY: $(VARIANTS) $(VARIANTS:%=%-programs) variantprograms
$(VARIANTS):
	@$(MAKE) --no-print-directory VARIANT=$@ variant
# A variant with its test programs.
$(VARIANTS:%=%-programs):
	@$(MAKE) --no-print-directory VARIANT=$(@:-programs=) variantprograms
variantprograms: variant $(OBJ)/unit $(OBJ)/api
