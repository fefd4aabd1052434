package fence

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// WatchdogTimeout is the time from the last feeding to the reset. The cluster's
// guard time relies on it.
const WatchdogTimeout = 10 * time.Second

// reopenEvery is the interval between attempts to open the watchdog.
const reopenEvery = time.Second

// watchdog resets the machine when it is not fed: it is a device
// (Documentation/watchdog/watchdog-api.rst), or a unix socket or FIFO whose reader
// replaces one. The loop owns it.
type watchdog struct {
	path   string // empty if there is none
	fd     int    // -1 if closed
	status WatchdogStatus
	tried  time.Duration
	// stuck is set if the device cannot be disarmed (nowayout), so that it must be
	// fed as long as this process runs.
	stuck bool
}

func newWatchdog(path string) *watchdog {
	if path == "none" {
		path = ""
	}
	w := &watchdog{path: path, fd: -1, status: WatchdogStatus{Kind: "none", Path: path}}
	if path == "" {
		w.status.Problem = "no watchdog: instances are not stopped if basalt-fence itself fails"
	}
	return w
}

// feed feeds the watchdog, and opens it before if needed.
func (w *watchdog) feed(now time.Duration) error {
	if w.path == "" {
		return nil
	}
	if w.fd < 0 {
		if w.tried != 0 && now < w.tried+reopenEvery {
			return nil
		}
		w.tried = now
		if err := w.open(); err != nil {
			w.status.Problem = "open watchdog: " + err.Error()
			return errors.New(w.status.Problem)
		}
	}
	if _, err := unix.Write(w.fd, []byte("1")); err != nil {
		w.status.Problem = "feed watchdog: " + err.Error()
		// A substitute that has closed is opened again. A slow one, and a device,
		// stay open.
		if w.status.Kind != "device" && !errors.Is(err, unix.EAGAIN) {
			w.drop()
			w.tried = 0
		}
		return errors.New(w.status.Problem)
	}
	w.status.Fed = now
	return nil
}

// close disarms and closes the watchdog, if that is possible.
func (w *watchdog) close() error {
	if w.fd < 0 || w.stuck {
		return nil
	}
	if w.status.Kind == "device" {
		// A driver with nowayout returns EBUSY here; one that does not support the
		// request is disarmed by the magic close.
		if err := unix.IoctlSetPointerInt(w.fd, unix.WDIOC_SETOPTIONS, unix.WDIOS_DISABLECARD); errors.Is(err, unix.EBUSY) {
			w.stuck = true
			w.status.Problem = "the watchdog cannot be disarmed (nowayout): it resets the machine after basalt-fence stops"
			return errors.New(w.status.Problem)
		}
	}
	_, err := unix.Write(w.fd, []byte("V")) // magic close
	w.drop()
	return err
}

func (w *watchdog) drop() {
	_ = unix.Close(w.fd)
	w.fd, w.status.Armed = -1, false
}

func (w *watchdog) open() error {
	info, err := os.Stat(w.path)
	if err != nil {
		return err
	}
	w.status.Timeout, w.status.Problem = WatchdogTimeout, ""
	switch mode := info.Mode(); {
	case mode&os.ModeSocket != 0:
		w.status.Kind = "socket"
		w.fd, err = dialNonblock(w.path)
	case mode&os.ModeNamedPipe != 0:
		w.status.Kind = "fifo"
		w.fd, err = unix.Open(w.path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	case mode&os.ModeCharDevice != 0:
		w.status.Kind = "device"
		if w.fd, err = unix.Open(w.path, unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
			w.setTimeout()
		}
	default:
		return fmt.Errorf("%s is not a device, socket or FIFO", w.path)
	}
	if err != nil {
		w.fd = -1
		return err
	}
	w.status.Armed = true
	return nil
}

// setTimeout sets the timeout of a device, which may use another one.
func (w *watchdog) setTimeout() {
	want := int(WatchdogTimeout / time.Second)
	err := unix.IoctlSetPointerInt(w.fd, unix.WDIOC_SETTIMEOUT, want)
	got, gerr := unix.IoctlGetInt(w.fd, unix.WDIOC_GETTIMEOUT)
	switch {
	case gerr != nil:
		w.status.Timeout = 0
		w.status.Problem = fmt.Sprintf("read timeout of watchdog failed (%v): want %d s", gerr, want)
	case got > want:
		w.status.Timeout = time.Duration(got) * time.Second
		w.status.Problem = fmt.Sprintf("set timeout of watchdog failed: it is %d s, want %d s (%v): a machine that fails to fence itself resets too late", got, want, err)
	default:
		w.status.Timeout = time.Duration(got) * time.Second
	}
}

func dialNonblock(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
