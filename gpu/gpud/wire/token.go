package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// PassToken returns a descriptor from which a child process that inherits it
// reads the token once, with TakeToken. The caller must close it.
func PassToken(token string) (*os.File, error) {
	r, w, err := TokenPipe()
	if err != nil {
		return nil, err
	}
	if err := GiveToken(w, token); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// TokenPipe returns a pipe for a child process that must not begin before it is
// given its token: it inherits r, and waits in TakeToken. When the caller exits,
// or closes w, without GiveToken, the child gets none. The caller must close r.
func TokenPipe() (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		err = fmt.Errorf("write token: %w", err)
	}
	return r, w, err
}

// GiveToken sends the token to the child and closes w. It returns no error if the
// child has ended.
func GiveToken(w *os.File, token string) error {
	if len(token) > MaxToken { // far below what fits into a pipe without a reader
		return errors.Join(fmt.Errorf("token has %d bytes, want at most %d", len(token), MaxToken), w.Close())
	}
	_, err := w.WriteString(token)
	if errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("write token: %w", err)
	}
	return nil
}

// TakeToken reads the token from an inherited descriptor and closes it.
func TakeToken(fd int) (string, error) {
	f := os.NewFile(uintptr(fd), "token")
	if f == nil {
		return "", fmt.Errorf("--token-fd %d is not a descriptor", fd)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxToken+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("--token-fd %d: %w", fd, err)
	case len(b) == 0 || len(b) > MaxToken:
		return "", fmt.Errorf("--token-fd %d: token must have 1 to %d bytes", fd, MaxToken)
	}
	return string(b), nil
}
