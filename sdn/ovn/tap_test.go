package ovn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTapIsDeaf checks that the node's kernel ignores what an instance sends
// into its tap: ARP requests for the node's addresses, and packets to them.
// With the kernel's default settings, it processes both.
func TestTapIsDeaf(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("host: creating taps requires root")
	}
	for _, c := range []struct {
		name  string
		up    func() error
		hears bool
	}{
		{"as the kernel makes it", func() error { return run("link", "set", "btdeaf", "up") }, true},
		{"as Plug makes it", func() error { return setLink("btdeaf", 1442) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var answered bool
			var heard int
			done := make(chan error)
			go func() {
				runtime.LockOSThread() // the namespace ends with the thread
				done <- func() (err error) {
					answered, heard, err = shout(c.up)
					return err
				}()
			}()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if answered != c.hears || heard > 0 != c.hears {
				t.Errorf("ARP answered: %t, packets received: %d, want %t for both", answered, heard, c.hears)
			}
		})
	}
}

// TestTapQueues checks that a tap is created for one queue or for several,
// that an existing one that is not open is created again if it is of the other
// kind, and that an open one is left unchanged.
func TestTapQueues(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("host: creating taps requires root")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the namespace ends with the thread
		done <- tapQueues(t)
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func tapQueues(t *testing.T) error {
	const name = "btqueues"
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	opens := func(when string, several, want bool) (fds []int) {
		n := 1
		if several {
			n = 2
		}
		for range n {
			fd, err := OpenTap(name, several)
			if err == nil {
				fds = append(fds, fd)
			}
			if (err == nil) != want {
				t.Errorf("%s: opening for several queues %v = %v, want success %v", when, several, err, want)
			}
		}
		return fds
	}
	release := func(fds []int) {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
	for _, several := range []bool{false, true, true, false} {
		if err := errors.Join(makeTap(t.Context(), name, 0, several), setLink(name, 1442)); err != nil {
			return err
		}
		release(opens("made anew", !several, false))
		held := opens("made anew", several, true)
		for _, other := range []bool{several, !several} {
			if err := makeTap(t.Context(), name, 0, other); err != nil {
				return err
			}
		}
		release(opens("in use", !several, false))
		release(held)
	}
	return nil
}

func run(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}

// shout sends to a node, in its own namespace, from behind a tap.
func shout(up func() error) (answered bool, heard int, err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return false, 0, err
	}
	if err := errors.Join(run("link", "set", "lo", "up"), run("addr", "add", "192.0.2.77/32", "dev", "lo"), makeTap(context.Background(), "btdeaf", 0, false), up()); err != nil {
		return false, 0, err
	}
	link, err := net.InterfaceByName("btdeaf")
	if err != nil {
		return false, 0, err
	}
	tap, err := OpenTap("btdeaf", false)
	if err != nil {
		return false, 0, err
	}
	defer unix.Close(tap)
	ear, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false, 0, err
	}
	defer unix.Close(ear)
	if err := unix.Bind(ear, &unix.SockaddrInet4{Port: 4001}); err != nil {
		return false, 0, err
	}
	me, everybody := net.HardwareAddr{0x52, 0x54, 0, 0, 1, 0x0a}, net.HardwareAddr{255, 255, 255, 255, 255, 255}
	frame := func(to net.HardwareAddr, kind uint16, body ...byte) []byte {
		return append(binary.BigEndian.AppendUint16(append(append([]byte{}, to...), me...), kind), body...)
	}
	question := frame(everybody, 0x0806, append(append(append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, me...), 192, 0, 2, 9), 0, 0, 0, 0, 0, 0, 192, 0, 2, 77)...)
	// 192.0.2.9 to 192.0.2.77, UDP from 4000 to 4001 without checksum.
	packet := []byte{0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0xf6, 0x79, 192, 0, 2, 9, 192, 0, 2, 77, 0x0f, 0xa0, 0x0f, 0xa1, 0, 12, 0, 0, 'h', 'e', 'y', '!'}
	binary.BigEndian.PutUint16(packet[10:], 0)
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(packet[i:]))
	}
	binary.BigEndian.PutUint16(packet[10:], ^uint16(sum>>16+sum&0xffff))
	buf := make([]byte, 2048)
	for range 20 {
		for _, f := range [][]byte{question, frame(link.HardwareAddr, 0x0800, packet...), frame(everybody, 0x0800, packet...)} {
			if _, err := unix.Write(tap, f); err != nil {
				return false, 0, err
			}
		}
		time.Sleep(20 * time.Millisecond)
		for n, err := unix.Read(tap, buf); err == nil; n, err = unix.Read(tap, buf) {
			answered = answered || n >= 42 && buf[12] == 8 && buf[13] == 6 && buf[21] == 2
		}
		for _, err := unix.Read(ear, buf); err == nil; _, err = unix.Read(ear, buf) {
			heard++
		}
	}
	return answered, heard, nil
}
