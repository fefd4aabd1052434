# libcublas.so.12 and libcublasLt.so.12. The Makefile above includes this file. Both libraries contain
# all objects that are not part of one API, because a program may load either alone.
BLAS_FLAGS = -Iblas/include -Iblas/src '-DCUBLASAPI=__attribute__((visibility("default")))'
BLAS_PTX   := $(wildcard blas/ptx/*.ptx)
BLAS_LT    := $(filter blas/src/lt%,$(wildcard blas/src/*.c))
BLAS_API   := $(filter %_api.c,$(wildcard blas/src/*.c))
BLAS_BOTH  := $(filter-out $(BLAS_LT) $(BLAS_API),$(wildcard blas/src/*.c))
blas_objects = $(patsubst blas/src/%.c,$(OBJ)/blas/%.o,$(1)) $(patsubst blas/ptx/%.ptx,$(OBJ)/blas/ptx_%.o,$(BLAS_PTX))

$(OBJ)/blas/%.o: blas/src/%.c Makefile blas/blas.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(BLAS_FLAGS) -fPIC -c -o $@ $<
# Converts a module's text to a C string.
$(OBJ)/blas/ptx_%.c: blas/ptx/%.ptx blas/blas.mk
	@mkdir -p $(@D)
	(echo 'extern const char ptx_$*[]; const char ptx_$*[] ='; \
	 sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g; s/.*/"&\\n"/' $<; echo ';') >$@
$(OBJ)/blas/ptx_%.o: $(OBJ)/blas/ptx_%.c
	$(CC) $(filter-out -g,$(CFLAGS)) -Wno-overlength-strings -fPIC -c -o $@ $<
define blas_library
$(OUT)/lib/cublas/$(1).so.12: $$(call blas_objects,$(2))
	@mkdir -p $$(@D)
	echo '$(1).so.12 { global: cublas*; local: *; };' >$(OBJ)/blas/$(1).map
	$$(CC) $(SHARED) -Wl,-soname,$(1).so.12 -Wl,--version-script=$(OBJ)/blas/$(1).map -o $$@ $$(filter %.o,$$^) -pthread -ldl
endef
$(eval $(call blas_library,libcublas,$(BLAS_BOTH) $(BLAS_API)))
$(eval $(call blas_library,libcublasLt,$(BLAS_BOTH) $(BLAS_LT)))

# Compiles the kernels' PTX, which is in the tree, with clang: one module for each type.
.PHONY: blas-ptx
blas-ptx:
	@mkdir -p blas/ptx
	for m in $(BLAS_MODULES); do \
		$(CLANG) -x cuda --cuda-device-only --cuda-gpu-arch=sm_60 -nocudainc -nocudalib -O2 -std=c++17 -ffp-contract=off \
			-Wall -Wextra -Werror -Wno-unknown-cuda-version -DMODULE_$${m#*_} -S -o blas/ptx/$$m.ptx blas/kernels/$${m%%_*}.cu && \
		sed -i '/^[[:space:]]*\/\/ /d' blas/ptx/$$m.ptx || exit 1; \
	done
BLAS_MODULES := $(addprefix gemm_,f32 f64 c32 c64 f16 bf16 s8) $(addprefix vector_,f32 f64 c32 c64 f16 bf16) \
	$(addprefix solve_,f32 f64 c32 c64)

BLAS_TESTS := $(patsubst blas/test/%.c,$(OBJ)/blas/test/%.o,$(wildcard blas/test/*.c))
$(OBJ)/blas/test/%.o: blas/test/%.c Makefile blas/blas.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Iblas/include -Iblas/test -c -o $@ $<
$(OBJ)/blas/test/blas: $(BLAS_TESTS) $(BLAS) $(OUT)/lib/libcuda.so
	$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -o $@ $(filter %.o,$^) $(BLAS) -L$(OUT)/lib -lcuda -lm -pthread -Wl,-rpath,$(OUT)/lib -Wl,-rpath,$(OUT)/lib/cublas
$(OBJ)/blas/nodriver: blas/test/nodriver/nodriver.c $(BLAS)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -Iblas/include -o $@ $^

-include $(wildcard $(OBJ)/blas/*.d $(OBJ)/blas/test/*.d)
