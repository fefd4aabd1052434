// Command basalt-guest-agent is the guest agent of the tools disc, for images without one
// (gpu/guest/guestagent). It serves the host's virtio-serial port until it is killed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/guest/guestagent"
)

// port is the port's name, which the hypervisor of the host sets; udev creates the link.
const port = "/dev/virtio-ports/org.qemu.guest_agent.0"

func main() {
	path := flag.String("port", port, "character `device` to serve")
	flag.Parse()
	if err := run(*path); err != nil {
		fmt.Fprintln(os.Stderr, "basalt-guest-agent:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%s: another guest agent serves it", path)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return guestagent.New().Serve(waiting{f}, f)
}

// waiting reads a port that may have no other end: without a host, reads return no bytes.
type waiting struct{ f *os.File }

// withoutHost is the pause between two reads without a host.
const withoutHost = 100 * time.Millisecond

func (w waiting) Read(b []byte) (int, error) {
	for {
		n, err := w.f.Read(b)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		time.Sleep(withoutHost)
	}
}
