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

// Smi runs nvidia-smi in a container, where this program is mounted in its place. It exists
// because of images without glibc: the kernel would report that nvidia-smi does not exist,
// although the file does. It returns only if it fails.
func Smi(args []string) error {
	return smi("/", hiddenProgram, args)
}

// smi checks that the program below root can be loaded, and executes it.
func smi(root, program string, args []string) error {
	program = filepath.Join(root, program)
	if err := loadable(root, program); err != nil {
		return err
	}
	err := unix.Exec(program, append([]string{program}, args[1:]...), os.Environ())
	return fmt.Errorf("start %s: %w", program, err)
}

// loadable returns nil if the dynamic loader that the program needs exists below root.
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

// interpreter returns the path of the dynamic loader that an ELF program names, or "" for a
// static program.
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
