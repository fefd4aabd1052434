package qemuimg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/appliance/apparmor"
)

// QEMU's parsers of image formats are large, and an image of a user may exploit one of
// them. So programs that open such an image are confined: they run as a user without
// files, capabilities and network, under an AppArmor profile, and get the image as an open
// file.

// Limits of a confined program: address space, processor time, and the time until it is
// killed. 1 GiB suffices for the tables of any image that is accepted.
const (
	maxAddresses = "--as=1073741824"
	maxCPU       = "--cpu=120"
	maxTime      = 5 * time.Minute
)

// nobody is the user and the group that own no files.
const nobody = 65534

// confined returns a command that runs a program confined, with open files from /dev/fd/3
// on; everybody must be allowed to read them. limits are options of prlimit. If this
// process is not root's, the program has its rights, but no other program's.
func confined(ctx context.Context, files []*os.File, limits []string, program ...string) *exec.Cmd {
	words := slices.Concat(limits, []string{"--core=0", "setpriv", "--no-new-privs", "--pdeathsig=KILL"}, apparmor.Image.Setpriv())
	root := os.Geteuid() == 0
	if root {
		id := strconv.Itoa(nobody)
		words = append(words, "--reuid="+id, "--regid="+id, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")
	}
	cmd := exec.CommandContext(ctx, "prlimit", append(words, program...)...)
	cmd.ExtraFiles, cmd.Dir = files, "/"
	if root {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC}
	}
	return cmd
}

// inspect runs a verb of qemu-img on an image of a user, confined, and returns its output.
func inspect(ctx context.Context, image *os.File, verb string, args ...string) ([]byte, error) {
	// Whoever receives the image has it open for writing.
	reading, err := os.Open("/proc/self/fd/" + strconv.FormatUint(uint64(image.Fd()), 10))
	if err != nil {
		return nil, fmt.Errorf("open %s for reading: %w", image.Name(), err)
	}
	defer reading.Close()
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	words := append(append([]string{"qemu-img", verb}, args...), "/dev/fd/3")
	return run(ctx, verb, confined(ctx, []*os.File{reading}, []string{maxAddresses, maxCPU}, words...))
}
