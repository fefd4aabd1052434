// Command basalt-guest-agent is the guest agent of the tools disc, for images that bring
// none (gpu/guest/guestagent). It serves the host's virtio-serial port until it is ended.
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

// port is what the host's hypervisor calls it; udev makes the name.
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

// waiting reads a port whose other end comes and goes: without a host it has no bytes.
type waiting struct{ f *os.File }

// withoutHost is how long it waits then.
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
