package container

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Smi runs nvidia-smi in a container, where this program lies in its place: with an
// image that cannot run it, the kernel's error would be that the file which is there
// is not. It returns only with an error.
func Smi(args []string) error {
	return smi("/", hiddenProgram, args)
}

func smi(root, program string, args []string) error {
	program = filepath.Join(root, program)
	if err := loadable(root, program); err != nil {
		return err
	}
	err := unix.Exec(program, append([]string{program}, args[1:]...), os.Environ())
	return fmt.Errorf("start %s: %w", program, err)
}

// loadable returns nil if root has the loader that the program needs.
func loadable(root, program string) error {
	loader, err := interpreter(program)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: this file stands in for nvidia-smi in containers that were given a vGPU", err)
	}
	if err != nil || loader == "" {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, loader)); err == nil {
		return nil
	}
	has := "no known C library was found"
	if musl, _ := filepath.Glob(filepath.Join(root, "lib/ld-musl-*.so.1")); len(musl) > 0 {
		has = "it uses musl"
	}
	return fmt.Errorf("this image has no GNU C library (%s is missing; %s), which the libraries of the vGPU need: use an image with glibc, such as Debian's, Ubuntu's or Fedora's", loader, has)
}

// interpreter returns the loader that an ELF program names, or "" of a static one.
func interpreter(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("open ELF file: %w", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		b := make([]byte, min(p.Filesz, 4096))
		if _, err := p.ReadAt(b, 0); err != nil {
			return "", fmt.Errorf("%s: read name of its loader: %w", program, err)
		}
		return strings.TrimRight(string(b), "\x00"), nil
	}
	return "", nil
}
