package wire

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Memory that sessions of a vGPU share (decision 46). A worker asks to share a piece of
// what it holds, and then sends the descriptor in which the piece lies; another worker of
// the same vGPU that knows the token opens it. Whoever has it gives it up with unshare,
// or with its end, and the last one gives the memory back.

// Share is one piece.
type Share struct {
	Token string `json:"t"`           // unguessable, made by the worker that shares
	Size  uint64 `json:"s"`           // bytes; 0: an event, which counts none
	Owner bool   `json:"o,omitempty"` // of a registration: this worker made it
}

// MemoryUnit is worker.AllocUnit: what memory is accounted in, bytes.
const MemoryUnit = 512

// Bytes is what it counts.
func (s Share) Bytes() uint64 { return (s.Size + MemoryUnit - 1) &^ (MemoryUnit - 1) }

const (
	// MaxShares bounds what one session shares and has opened.
	MaxShares = 128
	// TokenLength of a share, bytes of hexadecimal digits.
	TokenLength = 32
	// maxShare bounds the size of one, so that sums cannot wrap.
	maxShare = 1 << 44
	// maxFiles that may come before the lines that they belong to.
	maxFiles = 4
)

func (s *Share) check() error {
	if s == nil || !printable(s.Token, TokenLength, TokenLength) {
		return fmt.Errorf("%w: shared memory without a token", ErrLine)
	}
	if s.Size > maxShare {
		return fmt.Errorf("%w: shared memory has %d bytes, want at most %d", ErrLine, s.Size, uint64(maxShare))
	}
	return nil
}

// Files reads a unix socket and keeps the descriptors that come with its bytes, in their
// order, until they are taken.
type Files struct {
	conn *net.UnixConn
	came []*os.File
	oob  []byte
}

// NewFiles reads from a connection. One goroutine uses it.
func NewFiles(conn *net.UnixConn) *Files {
	return &Files{conn: conn, oob: make([]byte, unix.CmsgSpace(4*(maxFiles+1)))}
}

// Read implements io.Reader.
func (f *Files) Read(b []byte) (int, error) {
	n, oobn, flags, _, err := f.conn.ReadMsgUnix(b, f.oob)
	if oobn > 0 {
		if e := f.keep(f.oob[:oobn]); err == nil {
			err = e
		}
	}
	if err == nil && flags&unix.MSG_CTRUNC != 0 {
		err = fmt.Errorf("%w: too many descriptors", ErrLine)
	}
	if err == nil && n == 0 && len(b) > 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

func (f *Files) keep(oob []byte) error {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLine, err)
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // other control messages carry no descriptors
		}
		for _, fd := range fds {
			f.came = append(f.came, os.NewFile(uintptr(fd), "shared memory"))
		}
	}
	if len(f.came) > maxFiles {
		return fmt.Errorf("%w: %d unexpected descriptors", ErrLine, len(f.came))
	}
	return nil
}

// Take returns the descriptor of a line that says that it has one.
func (f *Files) Take() (*os.File, error) {
	if len(f.came) == 0 {
		return nil, fmt.Errorf("%w: a descriptor is missing", ErrLine)
	}
	file := f.came[0]
	f.came = f.came[1:]
	return file, nil
}

// Close closes the descriptors that nobody took.
func (f *Files) Close() {
	for _, file := range f.came {
		_ = file.Close()
	}
	f.came = nil
}

// writeFile writes a line and a descriptor with it.
func writeFile(conn *net.UnixConn, line []byte, file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var n int
	if e := raw.Control(func(fd uintptr) { n, _, err = conn.WriteMsgUnix(line, unix.UnixRights(int(fd)), nil) }); e != nil {
		return e
	}
	if err == nil && n < len(line) {
		_, err = conn.Write(line[n:]) // the descriptor went with the first byte
	}
	return err
}
