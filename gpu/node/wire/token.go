package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// PassToken returns a descriptor from which a child process that inherits it
// reads the token once, with TakeToken. The caller closes it.
func PassToken(token string) (*os.File, error) {
	if len(token) > MaxToken { // far below what a pipe takes without a reader
		return nil, fmt.Errorf("a token of %d bytes; %d are the limit", len(token), MaxToken)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	_, err = w.WriteString(token)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("token: %w", err), r.Close())
	}
	return r, nil
}

// TakeToken reads the token from an inherited descriptor and closes it.
func TakeToken(fd int) (string, error) {
	f := os.NewFile(uintptr(fd), "token")
	if f == nil {
		return "", fmt.Errorf("--token-fd %d is no descriptor", fd)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxToken+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("--token-fd %d: %w", fd, err)
	case len(b) == 0 || len(b) > MaxToken:
		return "", fmt.Errorf("--token-fd %d: a token has 1 to %d bytes", fd, MaxToken)
	}
	return string(b), nil
}
